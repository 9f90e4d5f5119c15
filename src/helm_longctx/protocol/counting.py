"""Counts the tokens of many long texts that share most of their words, such as the samples of a generated task.

A text is split where no token can cross, and each distinct part is tokenized once. For the second text it is mostly
enough to look up its sentences, or the words of new sentences. The counts are those of the whole text, without special
tokens.

The counts are the same because a byte-pair encoder only joins neighbouring tokens. If no token of the vocabulary
contains a letter followed by a space, no merge can cross such a place, whatever the text around it is. If a tokenizer's
vocabulary or components do not allow that (`PieceTokenizer.is_local`), each text is counted as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from helm_longctx.protocol.cutting.pieces import PieceTokenizer

CountTokens = Callable[[str], int]
"""(text) → its number of tokens."""

# Only after a single newline, because the patterns of tokenizers divide a longer run of white space by what follows it.
_LINES = re.compile(r"(?<=\S\n)(?=[A-Za-z])")
_WORDS = re.compile(r"(?<=[A-Za-z.,:;!?])(?= )")
_WORDS_AND_HYPHENS = re.compile(r"(?<=[A-Za-z.,:;!?])(?= )|(?<=[A-Za-z])(?=-[A-Za-z])")
_CROSSING = re.compile(r"[A-Za-z.,:;!?][ Ġ▁]|[\nĊ][A-Za-z]")
_HYPHENATED = re.compile(r"[A-Za-z]-")
"""The same places within tokens. Byte-level vocabularies write Ġ for a space and Ċ for a newline, others ▁ for a
space."""

LONG, TOGETHER = 8, 64
"""Parts of more than `LONG` characters with a digit are random numbers, which hardly ever repeat. They are not
remembered, and `TOGETHER` of them are tokenized at a time."""
_ONCE = re.compile(r"\A (?=.*\d).*[A-Za-z.,:;!?]\n?\Z")

SENTENCE, LONGEST_SENTENCE = 40, 2000
"""Sentences are remembered as a whole if they have at least `SENTENCE` characters on average and at most
`LONGEST_SENTENCE`."""

MOST_PARTS = 1 << 19
"""Most parts and sentences that are remembered, because parts that hardly ever repeat would fill the memory."""


def make_counter(tokenizer: Any) -> CountTokens:
    """Make a function that counts the tokens of texts without special tokens.

    Args:
        tokenizer: a Hugging Face tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.
    """
    if getattr(tokenizer, "is_fast", False):
        return make_counter(tokenizer.backend_tokenizer)
    if hasattr(tokenizer, "encode_ordinary_batch"):
        # Bytes that are not text by themselves become U+FFFD. This hides no place, because places consist of ASCII.
        vocabulary = b"\0".join(tokenizer.token_byte_values()).decode("utf-8", "replace")
        return _PartCounter(lambda texts: map(len, tokenizer.encode_ordinary_batch(texts)), vocabulary).count
    # This is a slow Hugging Face tokenizer. Its rules are Python code that cannot be checked, so each text is counted
    # as a whole.
    if callable(tokenizer):
        return lambda text: len(tokenizer.tokenize(text))
    pieces = PieceTokenizer(tokenizer)
    if not pieces.only_merges or not pieces.is_local:
        return lambda text: len(pieces.encode(text))
    # Added tokens are found in a text before anything is merged.
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    return _PartCounter(
        lambda texts: map(len, pieces.tokenizer.encode_batch_fast(texts, add_special_tokens=False)),
        "\0".join(token for token in tokenizer.get_vocab() if token not in added),
        [content for content in added if _CROSSING.search(content)],
    ).count


class _PartCounter:
    """Counts texts by their parts.

    Args:
        encode: (texts) → the number of tokens of each.
        vocabulary: the tokens that merges can make, separated by NUL.
        spaced: added tokens that contain a place where texts are split. A text that has one is counted as a whole.
    """

    def __init__(self, encode: Callable[[list[str]], Iterable[int]], vocabulary: str, spaced: Sequence[str] = ()):
        self._encode, self._spaced = encode, spaced
        # A text without the rarest character of each of these tokens, of which there can be a thousand, has none of
        # them.
        self._marks = {max(token) for token in spaced}
        self._splits = not _CROSSING.search(vocabulary)
        self._words = _WORDS if _HYPHENATED.search(vocabulary) else _WORDS_AND_HYPHENS
        self._sizes: dict[str, int] = {}
        self._sentences: dict[str, int] = {}
        word, line, pair, between = encode(["a", "\n", "a\n", "a\na"])
        self._word, self._line, self._between = word, line, between - pair

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        # If the text contains a token such as "end of text", that token crosses a place where the text would be split.
        if not self._splits or self._has_spaced(text):
            return self._count_whole(text)
        head, *sentences = _split_sentences(text)
        # The first part is tokenized without text before it, because it stands at the start of the text.
        start, *parts = self._split(head)
        for sentence in sentences:
            if _is_unique(sentence):
                parts += self._split(sentence)
        sentences = [sentence for sentence in sentences if not _is_unique(sentence)]
        new = {sentence: self._split(sentence) for sentence in {*sentences}.difference(self._sentences)}
        once = [part for part in parts if len(part) > LONG and part not in self._sizes and _ONCE.search(part)]
        self._learn({*parts, *chain.from_iterable(new.values())}.difference(self._sizes, once))
        self._sentences.update((sentence, self._sum(parts)) for sentence, parts in new.items())
        total = self._count_whole(start) + self._sum(parts) + self._count_once(once)
        total += sum(map(self._sentences.__getitem__, sentences))
        if len(self._sizes) + len(self._sentences) > MOST_PARTS:
            self._sizes.clear()
            self._sentences.clear()
        return total

    def _has_spaced(self, text: str) -> bool:
        return any(mark in text for mark in self._marks) and any(token in text for token in self._spaced)

    def _count_whole(self, text: str) -> int:
        return next(iter(self._encode([text])))

    def _split(self, text: str) -> list[str]:
        return [part for line in _LINES.split(text) for part in self._words.split(line)]

    def _sum(self, parts: Iterable[str]) -> int:
        size = self._sizes.get
        return sum(size(part, 0) for part in parts)

    def _learn(self, parts: Collection[str]) -> None:
        """Tokenize parts and remember their sizes. A part after a newline begins with a letter, others with a mark."""
        new = [(part, ("\n", self._line) if part[:1].isalpha() else ("a", self._word)) for part in parts]
        # The tokens of `before` are subtracted again. No merge crosses the place between them, so the rest is the size
        # of the part.
        sizes = self._encode([before + part for part, (before, _) in new])
        self._sizes.update((part, size - less) for (part, (_, less)), size in zip(new, sizes, strict=True))

    def _count_once(self, parts: Sequence[str]) -> int:
        """Count parts that are not remembered. Many are tokenized at a time, because each call has a fixed cost."""
        texts, letters = [], 0
        for start in range(0, len(parts), TOGETHER):
            pieces = ["a"]
            for part in parts[start : start + TOGETHER]:
                pieces += ["a", part] if pieces[-1].endswith("\n") else [part]
            texts.append("".join(pieces))
            letters += len(pieces) - len(parts[start : start + TOGETHER]) - 1
        return sum(self._encode(texts)) - len(texts) * self._word - letters * self._between


def _is_unique(sentence: str) -> bool:
    """Whether a sentence is so long, or stands beside such different ones, that it hardly ever repeats."""
    return "\n" in sentence or len(sentence) > LONGEST_SENTENCE


def _split_sentences(text: str) -> list[str]:
    """Split a text after its sentences. Short sentences, as in numbers and lists, hardly ever repeat: no split then."""
    first, *sentences = text.split(". ")
    if not sentences or len(text) < SENTENCE * len(sentences):
        return [text]
    return [f"{first}.", *(f" {sentence}." for sentence in sentences[:-1]), f" {sentences[-1]}"]
