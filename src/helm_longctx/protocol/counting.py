"""Counts the tokens of many long texts that share most of their words, such as the samples of a generated task.

A text is split at spaces where no token can cross, and each distinct word is tokenized once. From then on it is mostly
enough to look up the words, or longer texts between two such spaces. The counts are those of the whole text, without
special tokens.

The counts are the same because a byte-pair encoder only joins neighbouring tokens. If no token of the vocabulary
contains a letter followed by a space, no merge can cross such a place, whatever the text around it is. The same holds
for digits and marks (`_find_parts`). If a tokenizer's vocabulary or components do not allow that
(`PieceTokenizer.is_local`), each text is counted as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise, product
from operator import sub
from random import Random
from string import ascii_letters, digits
from typing import Any, NamedTuple, Protocol

from helm_longctx.protocol.cutting.pieces import PieceTokenizer


class CountTokens(Protocol):
    """Counts the tokens of a text, which can be given in parts."""

    def __call__(self, *texts: str) -> int:
        """Return the number of tokens of the texts joined by spaces. Texts that come again are counted fastest."""


SHORT = 7
"""Characters of words that are remembered whatever they consist of."""

MOST_BYTES, ENTRY = 1 << 28, 150
"""Bytes of the texts that are remembered, and of an entry besides its text."""

LARGEST_GROUP = 3
"""Digits that pre-tokenizers put into a group, where they group digits at all."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""Tokens of single bytes, which no merge makes."""

_GRAPHIC = frozenset(chr(code) for code in range(ord("!"), ord("~") + 1))
_MARKS = "\n.,:;!?-"
"""What can stand behind a word or a number. Apostrophes are missing: patterns join "'s" to the word before it."""

_ZEROS = bytes.maketrans(digits.encode(), b"0" * len(digits))

_STORED = {" ": " Ġ▁", "\n": "\nĊ"}
"""Byte-level vocabularies write Ġ for a space and Ċ for a newline, others ▁ for a space."""


Encode = Callable[[list[str]], list[int]]
"""(texts) → the number of tokens of each."""


def make_counter(tokenizer: Any) -> CountTokens:
    """Make a function that counts the tokens of texts without special tokens.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.
    """
    if getattr(tokenizer, "is_fast", False):
        return make_counter(tokenizer.backend_tokenizer)
    if hasattr(tokenizer, "encode_ordinary_batch"):
        # Bytes that are not text by themselves become U+FFFD. This hides no place, because places consist of ASCII.
        vocabulary = [token.decode("utf-8", "replace") for token in tokenizer.token_byte_values()]
        return _count_words(lambda texts: [len(tokenizer.encode_ordinary(text)) for text in texts], vocabulary)
    # This is a slow Hugging Face tokenizer. Its rules are Python code that cannot be checked, so each text is counted
    # as a whole.
    if callable(tokenizer):
        return lambda *texts: len(tokenizer.tokenize(" ".join(texts)))
    pieces = PieceTokenizer(tokenizer)
    model = pieces.tokenizer.model
    # Unknown characters beside each other can become one token, wherever a text is split.
    if not pieces.only_merges or not pieces.is_local or (model.fuse_unk and not model.byte_fallback):
        return lambda *texts: len(pieces.encode(" ".join(texts)))
    # Added tokens are found in a text before anything is merged.
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    return _count_words(
        lambda texts: [*map(len, pieces.tokenizer.encode_batch_fast(texts, add_special_tokens=False))],
        [token for token in tokenizer.get_vocab() if token not in added and not _BYTE.fullmatch(token)],
        added,
    )


def _count_words(encode: Encode, vocabulary: Collection[str], added: Collection[str] = ()) -> CountTokens:
    """Count texts by their words, if the vocabulary allows it.

    Args:
        vocabulary: the tokens that merges can make.
        added: other tokens, inside which a text must not be split.
    """
    parts = _find_parts(vocabulary, encode)
    return _WordCounter(encode, parts, added).count if parts else lambda *texts: encode([" ".join(texts)])[0]


class _WordCounter:
    """Counts texts by their words, and words that hardly ever repeat by what they consist of."""

    def __init__(self, encode: Encode, parts: _Parts, added: Collection[str]):
        self._encode, self._split, self._mask = encode, parts.pattern.findall, parts.mask
        # Most texts have none of their first two characters, so the search for whole tokens is rare.
        self._starts = {token[:2] for token in added}
        self._added = re.compile("|".join(map(re.escape, added)))
        # A token with a space can also lie across texts that are remembered.
        self._spaced = any(" " in token for token in added)
        self._before = dict(zip("a1", encode(["a", "1"]), strict=True))
        self._words: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._bytes = 0

    def count(self, *texts: str) -> int:
        """Return the number of tokens of texts joined by spaces, without special tokens."""
        start, *words = [*_join_open(texts[0].split(" ")), *texts[1:]]
        last = words.pop() if words else ""
        total, new = self._look_up(words)
        # Some tokenizers put a space before a text. A space at the start of the text can merge with it.
        if not last or start.startswith(" ") or self._has_added(start, *(words if self._spaced else new), last):
            return self._encode([" ".join(texts)])[0]
        if not _GRAPHIC.issuperset(text[-1:] for text in (start, *new)):
            return self.count(*_join_open([start, *words, last]))
        # The ends of a text are not between two spaces, so they are not remembered.
        total += sum(self._encode([start, f"a {last}"])) - self._before["a"] + self._count_new(new)
        if self._bytes > MOST_BYTES:
            self._words.clear()
            self._parts.clear()
            self._bytes = 0
        return total

    def _has_added(self, *texts: str) -> bool:
        text = " ".join(texts)
        return any(start in text for start in self._starts) and self._added.search(text) is not None

    def _look_up(self, words: Sequence[str]) -> tuple[int, list[str]]:
        """Return the number of tokens of the words that are remembered, and the other words."""
        # Up to a hundred thousand words are looked up without a loop in Python.
        sizes = [*map(self._words.get, words)]
        new = [word for word, size in zip(words, sizes, strict=True) if size is None] if None in sizes else []
        return sum(filter(None, sizes)), new

    def _count_new(self, words: Sequence[str]) -> int:
        """Count words that are not remembered, and remember those that are likely to come again."""
        if not words:
            return 0
        # Long numbers and compounds hardly ever repeat, but what they consist of does.
        usual = {word for word in {*words} if len(word) <= SHORT or word.isalpha() or " " in word}
        self._remember(self._words, dict.fromkeys(usual, "a "))
        rest = "".join([f" {word}" for word in words if word not in usual])
        masked = self._mask(rest)
        # The pattern also finds an empty part at the end.
        *parts, _ = self._split(rest if self._has_added(masked) else masked)
        # Each part is tokenized after a character from which no merge can cross to it.
        new = {part: "1" if part[0] in ascii_letters else "a" for part in {*parts}.difference(self._parts)}
        self._remember(self._parts, new)
        return sum(map(self._parts.__getitem__, parts)) + self._look_up([*filter(usual.__contains__, words)])[0]

    def _remember(self, sizes: dict[str, int], firsts: Mapping[str, str]) -> None:
        """Tokenize texts, each after `firsts[text]`, and remember their tokens without those of the first character."""
        found = self._encode([first + text for text, first in firsts.items()]) if firsts else []
        before = (self._before[first[0]] for first in firsts.values())
        self._add(sizes, dict(zip(firsts, map(sub, found, before), strict=True)))

    def _add(self, sizes: dict[str, int], new: Mapping[str, int]) -> None:
        sizes.update(new)
        self._bytes += sum(map(len, new)) + ENTRY * len(new)


def _is_open(text: str) -> bool:
    """Whether the tokens of a text can depend on what follows the space after it."""
    return text[-1:] not in _GRAPHIC


def _join_open(words: list[str]) -> list[str]:
    """Join each word with the next one if the text cannot be split between them."""
    if not any(map(_is_open, words)):
        return words
    joined, waiting = [], []
    for word in words:
        waiting.append(word)
        if not _is_open(word):
            joined.append(" ".join(waiting))
            waiting = []
    return [*joined, " ".join(waiting)] if waiting else joined


class _Parts(NamedTuple):
    """How to split words into parts whose tokens can be counted apart.

    Args:
        pattern: finds the parts: letters or digits, and what stands before them.
        mask: replaces digits by zeros if their values do not change the number of tokens.
    """

    pattern: re.Pattern[str]
    mask: Callable[[str], str]


def _find_parts(vocabulary: Collection[str], encode: Encode) -> _Parts | None:
    """Find out how words can be split; None if a text cannot even be split into words.

    No token contains the characters on both sides of a place between two parts. Pre-tokenizers do not decide about one
    side of such a place by the other one: runs of letters, marks and white space stay together.
    """
    pairs = {pair for token in vocabulary for pair in pairwise(token)}

    def is_apart(left: Iterable[str], right: str) -> bool:
        return pairs.isdisjoint(product(left, _STORED.get(right, right)))

    if not is_apart(_GRAPHIC, " "):
        return None
    word, group = "[A-Za-z0-9]+", _group_digits(vocabulary, encode)
    # Numbers with the same number of digits then have the same number of tokens.
    is_masked = group and _is_one_token(group, encode) and all(("0" <= a <= "9") == ("0" <= b <= "9") for a, b in pairs)
    if is_masked:
        word = "[A-Za-z]+[0-9]*|[0-9]+"
    elif all(is_apart(ascii_letters, digit) for digit in digits) and all(is_apart(digits, c) for c in ascii_letters):
        word = f"[0-9]{{1,{group or ''}}}|[A-Za-z]+"
    marks = "".join(mark for mark in _MARKS if is_apart(ascii_letters + digits, mark))
    # After any other character nothing is split up to the next word.
    pattern = re.compile(rf" ?[^ A-Za-z0-9\x80-\U0010ffff]*(?:{word}|)(?:[^ A-Za-z0-9{re.escape(marks)}][^ ]*|)")
    return _Parts(pattern, _mask if is_masked else str)


def _mask(text: str) -> str:
    """Replace digits by zeros. Python is much slower at that in texts than in bytes."""
    return text.encode(errors="surrogatepass").translate(_ZEROS).decode(errors="surrogatepass")


def _group_digits(vocabulary: Collection[str], encode: Encode) -> int | None:
    """The number of digits into which the pre-tokenizer groups numbers, from the left; None if it does not."""
    longest = max(map(len, re.findall("[0-9]+", " ".join(vocabulary))), default=1)
    if longest > LARGEST_GROUP:
        return None
    rng, (before,) = Random(0), encode(["a"])
    numbers = ["".join(rng.choices(digits, k=rng.randint(1, 12))) for _ in range(200)]
    groups = [[number[i : i + longest] for i in range(0, len(number), longest)] for number in numbers]
    sizes = iter(encode([f"a{group}" for group in chain.from_iterable(groups)]))
    # Merges without groups would not start each of these numbers with a group of full length.
    if encode([f"a{number}" for number in numbers]) != [sum(next(sizes) - before for _ in g) + before for g in groups]:
        return None
    return longest


def _is_one_token(longest: int, encode: Encode) -> bool:
    """Whether each number of up to `longest` digits is one token."""
    numbers = chain.from_iterable(product(digits, repeat=length) for length in range(1, longest + 1))
    return {*encode([f"a{''.join(number)}" for number in numbers])} == {encode(["a"])[0] + 1}
