"""Counts the tokens of many long texts that share most of their words, such as the samples of a generated task.

A text is split where no token can cross, and each distinct part is tokenized once. For the second text it is mostly
enough to look up its sentences, or the words of new sentences. The counts are those of the whole text, without special
tokens.

The counts are the same because a byte-pair encoder only joins neighbouring tokens. If no token of the vocabulary
contains a letter followed by a space, no merge can cross such a place, whatever the text around it is. The same holds
for digits and marks (`_make_pattern`). If a tokenizer's vocabulary or components do not allow that
(`PieceTokenizer.is_local`), each text is counted as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from random import Random
from string import ascii_letters, digits
from typing import Any

from helm_longctx.protocol.cutting.pieces import PieceTokenizer

CountTokens = Callable[[str], int]
"""(text) → its number of tokens."""

SENTENCE, LONGEST_SENTENCE = 40, 2000
"""Sentences are remembered as a whole if they have at least `SENTENCE` characters on average and at most
`LONGEST_SENTENCE`."""

SHORT = 8
"""Characters of words that are remembered whatever they consist of."""

MOST_BYTES, ENTRY = 1 << 28, 150
"""Bytes of the sentences and words that are remembered, and of an entry besides its text."""

_SPACE = re.compile(r"(?<=[!-~])(?= )")
# It begins with a space because such patterns are searched fastest.
_OTHER_SPACE = re.compile(r" (?<![!-~] )")
_LINE_ENDS = re.compile(r"((?<=[!-~]) [^ ]*\n[^ ]*(?<=[!-~])(?= ))")
"""Words with newlines between two spaces."""

LARGEST_GROUP = 3
"""Digits that pre-tokenizers put into a group, where they group digits at all."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""Tokens of single bytes, which no merge makes."""

_GRAPHIC = [chr(code) for code in range(ord("!"), ord("~") + 1)]
_MARKS = "\n.,:;!?-"
"""What can stand behind a word or a number. Apostrophes are missing: patterns join "'s" to the word before it."""

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
        return _count_parts(lambda texts: [len(tokenizer.encode_ordinary(text)) for text in texts], vocabulary)
    # This is a slow Hugging Face tokenizer. Its rules are Python code that cannot be checked, so each text is counted
    # as a whole.
    if callable(tokenizer):
        return lambda text: len(tokenizer.tokenize(text))
    pieces = PieceTokenizer(tokenizer)
    model = pieces.tokenizer.model
    # Unknown characters beside each other can become one token, wherever a text is split.
    if not pieces.only_merges or not pieces.is_local or (model.fuse_unk and not model.byte_fallback):
        return lambda text: len(pieces.encode(text))
    # Added tokens are found in a text before anything is merged.
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    return _count_parts(
        lambda texts: [*map(len, pieces.tokenizer.encode_batch_fast(texts, add_special_tokens=False))],
        [token for token in tokenizer.get_vocab() if token not in added and not _BYTE.fullmatch(token)],
        added,
    )


def _count_parts(encode: Encode, vocabulary: Collection[str], added: Collection[str] = ()) -> CountTokens:
    """Count texts by their parts, if the vocabulary allows it.

    Args:
        vocabulary: the tokens that merges can make.
        added: other tokens, inside which a text must not be split.
    """
    pattern = _make_pattern(vocabulary, encode)
    return _PartCounter(encode, pattern, added).count if pattern else lambda text: encode([text])[0]


class _PartCounter:
    """Counts texts by their sentences, words, and what words consist of. Only the last are tokenized."""

    def __init__(self, encode: Encode, pattern: re.Pattern[str], added: Collection[str]):
        self._encode, self._split = encode, pattern.findall
        # Most texts have none of their first characters, so the search for whole tokens is rare.
        self._starts = {token[0] for token in added}
        self._added = re.compile("|".join(map(re.escape, added)))
        self._before = dict(zip("a1", encode(["a", "1"]), strict=True))
        self._sentences: dict[str, int] = {}
        self._words: dict[str, int] = {}
        self._bytes = 0

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        # Some tokenizers put a space before a text. A space at the start of the text can merge with it.
        if text.startswith(" ") or self._has_added(text):
            return self._encode([text])[0]
        (start, *words), sentences = _split(text)
        self._learn(self._sentences, {*sentences}.difference(self._sentences))
        total = self._encode([start])[0] + self._sum_words(words) + sum(map(self._sentences.__getitem__, sentences))
        if self._bytes > MOST_BYTES:
            self._sentences.clear()
            self._words.clear()
            self._bytes = 0
        return total

    def _has_added(self, text: str) -> bool:
        return any(start in text for start in self._starts) and self._added.search(text) is not None

    def _sum_words(self, words: Sequence[str]) -> int:
        sizes = [*map(self._words.get, words)]
        new = [word for word, size in zip(words, sizes, strict=True) if size is None] if None in sizes else []
        # Long numbers and compounds hardly ever repeat, so they are not remembered.
        usual = {word for word in {*new} if len(word) <= SHORT or word[1:].isalpha()}
        self._learn(self._words, usual)
        parts = self._split("".join([word for word in new if word not in usual]))
        self._learn_parts(parts)
        return sum(filter(None, sizes)) + self._sum(filter(usual.__contains__, new)) + self._sum(parts)

    def _sum(self, parts: Iterable[str]) -> int:
        return sum(map(self._words.__getitem__, parts))

    def _learn(self, sizes: dict[str, int], pieces: Iterable[str]) -> None:
        """Remember the sizes of new pieces."""
        new = {piece: self._split(piece) for piece in pieces}
        self._learn_parts(chain.from_iterable(new.values()))
        self._remember(sizes, {piece: self._sum(parts) for piece, parts in new.items()})

    def _learn_parts(self, parts: Iterable[str]) -> None:
        # Each part is tokenized after a character from which no merge can cross to it. That character's tokens are
        # subtracted again.
        texts = [("1" if part[0] in ascii_letters else "a") + part for part in {*parts}.difference(self._words)]
        sizes = zip(texts, self._encode(texts) if texts else [], strict=True)
        self._remember(self._words, {text[1:]: size - self._before[text[0]] for text, size in sizes})

    def _remember(self, sizes: dict[str, int], new: Mapping[str, int]) -> None:
        sizes.update(new)
        self._bytes += sum(map(len, new)) + ENTRY * len(new)


def _make_pattern(vocabulary: Collection[str], encode: Encode) -> re.Pattern[str] | None:
    """Make the pattern of a word's parts: letters or digits, and what stands before them; None if no text can be split.

    No token contains the characters on both sides of a place between two parts. Pre-tokenizers do not decide about one
    side of such a place by the other one: runs of letters, marks and white space stay together.
    """
    pairs = {left + right for token in vocabulary for left, right in pairwise(token)}

    def is_apart(left: Iterable[str], right: str) -> bool:
        return pairs.isdisjoint(a + b for a in left for b in _STORED.get(right, right))

    if not is_apart(_GRAPHIC, " "):
        return None
    word = "[A-Za-z0-9]+"
    if all(is_apart(ascii_letters, digit) for digit in digits) and all(is_apart(digits, c) for c in ascii_letters):
        word = f"[0-9]{{1,{_group_digits(vocabulary, encode) or ''}}}|[A-Za-z]+"
    marks = "".join(mark for mark in _MARKS if is_apart(ascii_letters + digits, mark))
    # After any other character nothing is split up to the next word.
    other = rf"[^A-Za-z0-9 {re.escape(marks)}].*?(?=(?<=[!-~]) |\Z)"
    before = r"[\s\x00-/:-@\[-`{-\x7f]"
    return re.compile(rf"(?s)(?:{before}*(?:{word})|{before}+|(?=.))(?:{other})?")


def _group_digits(vocabulary: Collection[str], encode: Encode) -> int | None:
    """The number of digits into which the pre-tokenizer groups numbers, from the left; None if it does not."""
    longest = max((len(run) for token in vocabulary for run in re.findall("[0-9]+", token)), default=1)
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


def _split_words(text: str) -> list[str]:
    """Split a text before each space that follows an ASCII character other than a space."""
    if "\0" in text or _OTHER_SPACE.search(text, 1):
        return _SPACE.split(text)
    return text.replace(" ", "\0 ").split("\0")


def _split(text: str) -> tuple[list[str], list[str]]:
    """Split a text into words and sentences. Sentences that hardly ever repeat become words."""
    head, *pieces = _split_sentences(text)
    words, sentences = _split_words(head), []
    for piece in pieces:
        if len(piece) > LONGEST_SENTENCE:
            words += _split_words(piece)
        elif "\n\n" in piece:
            # Here a document ends and another one begins. The text before and after the newlines repeats.
            chunks = _LINE_ENDS.split(piece)
            sentences += chunks[::2]
            words += chunks[1::2]
        else:
            sentences.append(piece)
    return words, sentences


def _split_sentences(text: str) -> list[str]:
    """Split a text after its sentences. Short sentences, as in numbers and lists, hardly ever repeat: no split then."""
    count = text.count(". ")
    if not count or len(text) < SENTENCE * count:
        return [text]
    first, *sentences = text.split(". ")
    return [f"{first}.", *(f" {sentence}." for sentence in sentences[:-1]), f" {sentences[-1]}"]
