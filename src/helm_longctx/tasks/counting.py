"""Counts the tokens of many long texts that share most of their words, such as the samples of a generated task.

Also reads tokenizers, encodes and decodes as official codes do, counts the tokens of texts by an estimate, and finds
where to cut long texts.

A text is split at spaces where no token can cross, and each distinct word is tokenized once. From then on it is mostly
enough to look up the words, or longer texts between two such spaces. The counts are equal to the counts of the whole
text, without special tokens.

The counts are the same because a byte-pair encoder only joins neighbouring tokens. If no token of the vocabulary
contains a letter followed by a space, no merge can cross such a boundary, whatever the text around it is. The same holds
for numbers and hyphens. If a tokenizer's vocabulary or components do not allow that (`PieceTokenizer.is_local`), each
text is counted as a whole.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, product
from operator import sub
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from helm_longctx.errors import InputError, PreconditionError
from helm_longctx.tasks.cutting.pieces import LongText, PieceTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class CountTokens(Protocol):
    """Counts the tokens of a text. It can be given in parts."""

    def __call__(self, *texts: str) -> int:
        """Return the number of tokens of the texts joined by spaces. Texts that come again are counted fastest."""


_SHORT = 7
"""Characters of words that are remembered whatever they consist of."""

_MOST_BYTES = 1 << 28
ENTRY = 150
"""Bytes of the texts that are remembered, and of an entry without its text."""

_LARGEST_GROUP = 3
"""Digits that pre-tokenizers put into a group, where they group digits at all."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""Tokens of single bytes. No merge makes them."""

_GRAPHIC = frozenset(chr(code) for code in range(ord("!"), ord("~") + 1))

_SPACES = " Ġ▁"
"""Byte-level vocabularies write Ġ for a space, others ▁."""

_ZEROS = str.maketrans(digits, "0" * len(digits))

_CUT = "9"
"""Replaces each token of a number, and marks other points at which a text is split. The text has no other digits then."""

_SPACE = re.compile(" (?<=[!-~] )")
"""A space at which a text can be split, because no token can cross it."""

_HYPHEN = re.compile("-(?<=[A-Za-z]-)")
"""A hyphen after a letter."""


_Encode = Callable[[list[str]], list[int]]
"""(texts) → the number of tokens of each."""


def load_encoding(name: str) -> Any:
    """Load an encoding of tiktoken, such as `o200k_base`.

    Raises:
        InputError: tiktoken has no file of it and cannot fetch it.
    """
    import tiktoken

    try:
        return tiktoken.get_encoding(name)
    except Exception as error:  # of the HTTP library, the disk, or a wrong checksum
        raise PreconditionError(
            f"tiktoken cannot load the encoding {name} ({type(error).__name__}); check"
            " the network, or set TIKTOKEN_CACHE_DIR to a folder that has it"
        ) from error


class CharacterEncoding:
    """What is used of a `tiktoken.Encoding`, with a token for each character, as HELM's `simple/tokenizer1` counts."""

    def encode(self, text: str, disallowed_special: Collection[str] = ()) -> list[int]:
        """Return the number of each character. There are no special tokens."""
        return list(map(ord, text))

    encode_ordinary = encode

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of these characters."""
        return "".join(map(chr, tokens))


def make_counter(tokenizer: Any) -> CountTokens:
    """Make a counter without special tokens from a Hugging Face tokenizer, its backend, or a `tiktoken.Encoding`."""
    if getattr(tokenizer, "is_fast", False):
        return make_counter(tokenizer.backend_tokenizer)
    if isinstance(tokenizer, CharacterEncoding):
        return lambda *texts: len(" ".join(texts))
    if hasattr(tokenizer, "encode_ordinary_batch"):
        # Bytes that are not text by themselves become U+FFFD. This hides no boundary, because those consist of ASCII.
        vocabulary = []
        for token in tokenizer.token_byte_values():
            vocabulary.append(token.decode("utf-8", "replace"))
        return _count_words(
            lambda texts: [len(tokenizer.encode_ordinary(text)) for text in texts],
            vocabulary,
        )
    # This is a slow Hugging Face tokenizer. Its rules are Python code that cannot be checked, so each text is counted
    # as a whole.
    if callable(tokenizer):
        return lambda *texts: len(tokenizer.tokenize(" ".join(texts)))
    pieces = PieceTokenizer(tokenizer)
    model = pieces.tokenizer.model
    # Unknown characters next to each other can become one token, wherever a text is split.
    joins_unknown = pieces.only_merges and model.fuse_unk and not model.byte_fallback
    if not pieces.only_merges or not pieces.is_local or joins_unknown:
        return lambda *texts: len(pieces.encode(" ".join(texts)))
    # Added tokens are recognized in a text before anything is merged.
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    merged = [token for token in tokenizer.get_vocab() if token not in added]
    vocabulary = [token for token in merged if not _BYTE.fullmatch(token)]

    def encode(texts: Sequence[str]) -> list[int]:
        encodings = pieces.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return list(map(len, encodings))

    return _count_words(encode, vocabulary, added)


_MOST_COUNTS = 100_000
"""Number of texts whose counts are remembered."""


def remember_counts(count: CountTokens) -> CountTokens:
    """Return a counter that counts equal texts once. It keeps digests, and no text."""
    counts: dict[bytes, int] = {}

    def count_once(*texts: str) -> int:
        text = " ".join(texts).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(text).digest()
        if digest not in counts:
            if len(counts) >= _MOST_COUNTS:
                counts.clear()
            counts[digest] = count(*texts)
        return counts[digest]

    return count_once


def _count_words(
    encode: _Encode,
    vocabulary: Collection[str],
    added: Collection[str] = (),
) -> CountTokens:
    """Count texts by their words, if the vocabulary of merges allows it. No token of `added` is split."""
    pairs = set()
    for pair in {*pairwise("\0".join(vocabulary))}:
        if "\0" not in pair:
            pairs.add(pair)
    if not pairs.isdisjoint(product(_GRAPHIC, _SPACES)):
        return lambda *texts: encode([" ".join(texts)])[0]
    group = 0
    if all((first in digits) == (second in digits) for first, second in pairs):
        group = _group_digits(vocabulary, encode)
    splits_compounds = pairs.isdisjoint(product(ascii_letters, "-"))
    return _WordCounter(encode, group, splits_compounds, added).count


class _WordCounter:
    """Counts texts by their words, and words that hardly ever repeat by what they consist of.

    Args:
        group: digits of a number that are one token, wherever the number stands; 0 if numbers cannot be counted apart.
        cuts_hyphens: whether a hyphen after a letter can be counted apart from the letter.
        added: tokens inside which a text must not be split.
    """

    def __init__(
        self,
        encode: _Encode,
        group: int,
        cuts_hyphens: bool,
        added: Collection[str],
    ):
        self._encode = encode
        self._group = group
        self._cuts_hyphens = cuts_hyphens
        self._starts = {token[:1] for token in added}
        self._added = re.compile("|".join(map(re.escape, added)))
        # A token with a space can also lie across texts that are remembered.
        self._spaced = any(" " in token for token in added)
        self._before = dict(zip("a1", encode(["a", "1"]), strict=True))
        self._words: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._bytes = 0

    def count(self, *texts: str) -> int:
        """Return the number of tokens of texts joined by spaces, without special tokens."""
        words: list[str] = [*_SPACE.split(texts[0]), *texts[1:]]
        start = words.pop(0)
        last = words.pop() if words else ""
        total, rest = _look_up(self._words, words)
        new = [*dict.fromkeys(rest)]
        # Some tokenizers put a space before a text. A space at the start of the text can merge with it.
        text = " ".join((start, *(words if self._spaced else new), last))
        has_added = any(start in text for start in self._starts) and self._added.search(
            text
        )
        if not last or start.startswith(" ") or has_added:
            return self._encode([" ".join(texts)])[0]
        if not {text[-1:] for text in (start, *new)} <= _GRAPHIC:
            return self.count(*_join_open([start, *words, last]))
        # The ends of a text are not between two spaces, so they are not remembered.
        total += (
            sum(self._encode([start, f"a {last}"]))
            - self._before["a"]
            + self._count_new(rest, new)
        )
        if self._bytes > _MOST_BYTES:
            self._words.clear()
            self._parts.clear()
            self._bytes = 0
        return total

    def _count_new(self, words: Sequence[str], distinct: Sequence[str]) -> int:
        """Count words that are not remembered, and remember those that are likely to come again."""
        # Long numbers and compounds hardly ever repeat, but what they consist of does.
        usual = set()
        for word in distinct:
            if _is_usual(word):
                usual.add(word)
        # A text of several words is counted by its words, because other texts have them, too.
        longer = {}
        for text in usual:
            if " " in text:
                longer[text] = _SPACE.split(text)
        single = (usual - longer.keys()).union(*longer.values()).difference(self._words)
        self._remember(self._words, dict.fromkeys(single, "a "))
        sums = {}
        for text, parts in longer.items():
            sums[text] = sum(map(self._words.__getitem__, parts))
        self._add(self._words, sums)
        total, rare = _look_up(self._words, words)
        if rare:
            total += self._count_parts(rare) if self._group else self._count_whole(rare)
        return total

    def _count_whole(self, words: Sequence[str]) -> int:
        return (
            sum(self._encode([f"a {word}" for word in words]))
            - len(words) * self._before["a"]
        )

    def _count_parts(self, words: Sequence[str]) -> int:
        # Of the numbers the tokens are counted, and of the texts between them, split before hyphens.
        text = (" " + " ".join(words)).translate(_ZEROS)
        for length in range(self._group, 0, -1):
            text = text.replace("0" * length, _CUT)
        numbers = text.count(_CUT)
        if self._cuts_hyphens:
            text = _HYPHEN.sub(f"{_CUT}-", text)
        parts = [*filter(None, text.replace(" ", f"{_CUT} ").split(_CUT))]
        total, new = _look_up(self._parts, parts)
        # White space before a number can have other tokens than at the end of a text, unless it is one character.
        if any(part[-2:].isspace() and len(part) > 1 for part in new):
            return self._count_whole(words)
        # Each part is tokenized after a character from which no merge can cross to it.
        self._remember(
            self._parts, {part: "a" if part[0] in " -" else "1" for part in new}
        )
        return total + numbers + _look_up(self._parts, new)[0]

    def _remember(self, sizes: dict[str, int], firsts: Mapping[str, str]) -> None:
        """Tokenize texts, each after `firsts[text]`, and remember their tokens without the tokens of the first
        character."""
        if not firsts:
            return
        counts = self._encode([first + text for text, first in firsts.items()])
        before = (self._before[first[0]] for first in firsts.values())
        self._add(sizes, dict(zip(firsts, map(sub, counts, before), strict=True)))

    def _add(self, sizes: dict[str, int], new: Mapping[str, int]) -> None:
        sizes.update(new)
        self._bytes += sum(map(len, new)) + ENTRY * len(new)


def _is_usual(word: str) -> bool:
    """Whether a word is likely to come again."""
    return len(word) <= _SHORT or word.isalpha() or " " in word or not word.isascii()


def _look_up(sizes: Mapping[str, int], texts: Sequence[str]) -> tuple[int, list[str]]:
    """Return the sum of the sizes of those texts that have one, and the other texts."""
    # Up to a hundred thousand texts are looked up without a loop in Python.
    known = [*map(sizes.get, texts)]
    total = sum(filter(None, known))
    if None not in known:
        return total, []
    return total, [
        text for text, size in zip(texts, known, strict=True) if size is None
    ]


def _join_open(texts: Sequence[str]) -> list[str]:
    """Join each text with the next one if their tokens can depend on each other."""
    joined = []
    waiting = []
    for text in texts:
        waiting.append(text)
        if text[-1:] in _GRAPHIC:
            joined.append(" ".join(waiting))
            waiting = []
    if waiting:
        return [*joined, " ".join(waiting)]
    return joined


def _group_digits(vocabulary: Collection[str], encode: _Encode) -> int:
    """The number of digits into which numbers are grouped from the left, if each group is one token; else 0."""
    longest = max(map(len, re.findall("[0-9]+", " ".join(vocabulary))), default=1)
    if longest > _LARGEST_GROUP:
        return 0
    rng = Random(0)
    (before,) = encode(["a"])
    numbers = []
    for length in range(1, longest + 1):
        numbers += ["".join(number) for number in product(digits, repeat=length)]
    for _ in range(200):
        numbers.append("".join(rng.choices(digits, k=rng.randint(1, 12))))
    groups = [before - len(number) // -longest for number in numbers]
    if encode([f"a{number}" for number in numbers]) != groups:
        return 0
    return longest


class Codec(NamedTuple):
    """The two directions of a tokenizer.

    Args:
        encode: (text) → its tokens. Tokenizers of Hugging Face add special tokens, such as one for the beginning.
        decode: (tokens) → their text, in which special tokens have their names.
    """

    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]


def make_codec(tokenizer: Any) -> Codec:
    """Make the codec of a tokenizer."""
    # `tiktoken.Encoding.encode` refuses texts that contain the name of a special token.
    if hasattr(tokenizer, "encode_ordinary"):
        return Codec(tokenizer.encode_ordinary, tokenizer.decode)
    if callable(tokenizer):
        return Codec(tokenizer.encode, tokenizer.decode)
    return Codec(
        lambda text: tokenizer.encode(text).ids,
        lambda tokens: tokenizer.decode(tokens, skip_special_tokens=False),
    )


def read_tokenizer(file: Path) -> Tokenizer:
    """Read a saved fast tokenizer (`tokenizer.json`). Raises an `InputError` if the file is not one."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{file}: not a fast tokenizer file") from error


_DIGIT = 1
_LETTER = 2
_MARK = 3
_KINDS = np.zeros(256, np.uint8)
_KINDS[[*range(33, 127)]] = _MARK
_KINDS[[*range(48, 58)]] = _DIGIT
# Each byte of a character outside ASCII is 128 or above and counts as a letter.
_KINDS[[*range(65, 91), *range(97, 123), *range(128, 256)]] = _LETTER
# In Llama 2's tokenizer each newline is a token (`<0x0A>`).
_KINDS[10] = _MARK

_LETTERS_PER_TOKEN = 6


def estimate_llama2_tokens(text: str) -> int:
    """Estimate the number of Llama 2 tokens of a text, without a tokenizer.

    Each digit, punctuation mark and newline counts as a token. A run of letters counts as one token for every six
    letters or part of six. Spaces do not count. A character outside ASCII counts as as many letters as it has bytes in
    UTF-8. docs/data.md has the errors of the estimate.
    """
    kinds = _KINDS[np.frombuffer(text.encode("utf-8"), np.uint8)]
    single = int(np.count_nonzero((kinds == _DIGIT) | (kinds == _MARK)))
    # A run of letters begins and ends where the indicator changes. The zeros at both ends close runs at the ends of the
    # text.
    edges = np.flatnonzero(
        np.diff(np.concatenate(([0], (kinds == _LETTER).astype(np.int8), [0])))
    )
    runs = edges[1::2] - edges[::2]
    # -(-runs // n) rounds up. The last 1 is the token at the start of a text.
    return single + int(np.sum(-(-runs // _LETTERS_PER_TOKEN))) + 1


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of texts, special tokens included, by the tokenizer of a name, or by an `estimate`."""

    name: str
    count: Callable[[Sequence[str]], list[int]]


ESTIMATE = TokenCounter(
    "estimate", lambda texts: [estimate_llama2_tokens(text) for text in texts]
)


def read_token_counter(name: str, file: Path) -> TokenCounter:
    """Make a counter from a saved tokenizer (`tokenizer.json`), counting in parallel, without the GIL."""
    tokenizer = read_tokenizer(file)
    return TokenCounter(
        name,
        lambda texts: [
            len(encoding.ids) for encoding in tokenizer.encode_batch_fast(list(texts))
        ],
    )


class TextCutter:
    """Counts the tokens of texts with a saved fast tokenizer, and finds where to cut long texts.

    A text of more than `limit` tokens is cut so that text and ending together have `limit` tokens. As in HELMET
    (data.py truncate_llama2), the token counts of both include the special token at the start. A longer ending, or a
    file that is no tokenizer, raises an `InputError`.
    """

    def __init__(
        self,
        file: Path,
        limit: int,
        ending: str,
    ):
        tokenizer = read_tokenizer(file)
        self._tokenizer = PieceTokenizer(tokenizer)
        self._limit = limit
        self._place = limit - len(tokenizer.encode(ending).ids)
        if self._place < 0:
            raise InputError(
                f"{file}: the ending of cut texts has more than {limit} tokens with this tokenizer"
            )
        self._measures: dict[bytes, tuple[int, int | None]] = {}

    def measure(self, texts: Sequence[str]) -> list[tuple[int, int | None]]:
        """Return for each text its number of tokens, and the character at which to cut it (None if it fits).

        Equal texts are tokenized once, because all questions about a book have the same text.
        """
        # The keys are digests. Texts as keys would keep whole books in memory.
        keys = [hashlib.sha256(text.encode("utf-8")).digest() for text in texts]
        new = {}
        for key, text in zip(keys, texts, strict=True):
            if key not in self._measures:
                new[key] = text
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            measures = pool.map(
                lambda text: self._tokenizer.read(text, self._measure), new.values()
            )
            self._measures.update(zip(new, measures, strict=True))
        return [self._measures[key] for key in keys]

    def _measure(self, text: LongText) -> tuple[int, int | None]:
        pieces = text.pieces()
        tokens = (
            len(self._tokenizer.before)
            + sum(map(text.size, pieces))
            + len(self._tokenizer.after)
        )
        # The text is cut after the character of the last token that fits, as in HELMET (data.py:162).
        return tokens, text.span(pieces, self._place)[
            1
        ] if tokens > self._limit else None
