"""Tokens of texts piece by piece are those of the whole text."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.protocol.cutting.pieces import LongText, PieceTokenizer
from tests.protocol.tokenizers import KINDS, LINES, tokenizer_of

EACH = pytest.mark.parametrize("kind", [make.__name__ for make in KINDS])
WHOLE = ("across_words", "whole_unigram", "fixed_length", "quotations")
PARTS = [
    *LINES[:6], " ", "  ", "\n", "\n\n", "\t", " the", " a", "'s", "12345678", "987", "<s>", "</s>", " <mask>", "<|end of turn|>",
    "<unk>", "word" * 9, "字" * 40, "。", "，", "\u3000", "é", "e\u0301", "\u0301" * 5, "ﬁ", "Ⅷ", "🎼", "👩‍👩‍👧", "한국어", "ไทย", "\x00", "\xa0", '"', "▁", "Ġ",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PARTS) | st.text(max_size=20), max_size=30).map("".join)


SIZE = st.sampled_from([1, 20, 100])


@cache
def reader_of(kind: str, size: int) -> PieceTokenizer:
    return PieceTokenizer(tokenizer_of(kind), size)


def tokens_by_pieces(tokenizer: PieceTokenizer, text: str) -> list[int]:
    body = tokenizer.read(text, lambda text: [id for piece in text.pieces() for id in text.ids(piece)])
    return [*tokenizer.before, *body, *tokenizer.after]


@EACH
@settings(max_examples=50)
@given(text=TEXT, size=SIZE)
def test_same_tokens(kind: str, text: str, size: int) -> None:
    """Any script, special tokens in the text, runs without a space: not one token differs."""
    assert tokens_by_pieces(reader_of(kind, size), text) == tokenizer_of(kind).encode(text).ids


@EACH
@settings(max_examples=50)
@given(text=TEXT, size=SIZE)
def test_same_places(kind: str, text: str, size: int) -> None:
    """Each token stands where it stands in the whole text."""
    reader = reader_of(kind, size)

    whole = reader.tokenizer.encode(text, add_special_tokens=False).offsets

    def spans(text: LongText) -> list[tuple[int, int]]:
        pieces = text.pieces()
        return [text.span(pieces, len(reader.before) + token) for token in range(len(whole))]

    assert reader.read(text, spans) == whole


@pytest.mark.parametrize(
    ("kind", "apart"),
    [(make.__name__, make.__name__ not in WHOLE) for make in KINDS],
)
@pytest.mark.parametrize("line", [0, 4])
def test_what_comes_apart(kind: str, apart: bool, line: int) -> None:
    """Prose is read in pieces by every tokenizer that allows it, in windows not much longer than they are."""
    text, reader = " ".join([LINES[line]] * 400), PieceTokenizer(tokenizer_of(kind))

    def longest(text: LongText) -> int:
        return max(piece.stop - piece.begin for piece in text.pieces() if text.size(piece))

    assert (reader.read(text, longest) < 10_000) == apart


@EACH
def test_long_texts(kind: str) -> None:
    """At the size that is used: prose, Chinese without a space, code, and a run of letters longer than a piece."""
    rng = random.Random(kind)
    lines = [*LINES[:6], "字" * 9000, "a" * 9000 + " ", "12" * 5000, " " * 300]
    text = "".join(rng.choices(lines, weights=[40] * 6 + [1] * 4, k=1000))
    tokenizer = tokenizer_of(kind)
    assert tokens_by_pieces(PieceTokenizer(tokenizer), text) == tokenizer.encode(text).ids
