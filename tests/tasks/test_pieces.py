"""Tests that the tokens of texts piece by piece equal the tokens of the whole text."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from helm_longctx.tasks.cutting.pieces import LongText, NotApartError, PieceTokenizer
from tests.tasks.tokenizers import EACH, KINDS, LINES, PARTS, tokenizer_of

WHOLE = ("across_words", "whole_unigram", "fixed_length", "quotations")
TEXT = st.lists(st.sampled_from(PARTS) | st.text(max_size=20), max_size=30).map("".join)


SIZE = st.sampled_from([1, 20, 100])


@cache
def reader_of(kind: str, size: int) -> PieceTokenizer:
    return PieceTokenizer(tokenizer_of(kind), size)


def tokens_by_pieces(tokenizer: PieceTokenizer, text: str) -> list[int]:
    body = tokenizer.read(
        text, lambda text: [id for piece in text.pieces() for id in text.ids(piece)]
    )
    return [*tokenizer.before, *body, *tokenizer.after]


@EACH
@settings(max_examples=50)
@given(text=TEXT, size=SIZE)
def test_same_tokens(kind: str, text: str, size: int) -> None:
    """The tokens are equal for any script, special tokens in the text, and long runs without a space."""
    assert (
        tokens_by_pieces(reader_of(kind, size), text)
        == tokenizer_of(kind).encode(text).ids
    )


@EACH
@settings(max_examples=50)
@given(text=TEXT, size=SIZE)
def test_same_places(kind: str, text: str, size: int) -> None:
    """Each token has the same position as in the whole text."""
    reader = reader_of(kind, size)

    whole = reader.tokenizer.encode(text, add_special_tokens=False).offsets

    def spans(text: LongText) -> list[tuple[int, int]]:
        pieces = text.pieces()
        return [
            text.span(pieces, len(reader.before) + token) for token in range(len(whole))
        ]

    assert reader.read(text, spans) == whole


@pytest.mark.parametrize(
    ("kind", "apart"),
    [(make.__name__, make.__name__ not in WHOLE) for make in KINDS],
)
@pytest.mark.parametrize("line", [0, 4])
def test_what_comes_apart(kind: str, apart: bool, line: int) -> None:
    """Prose is read in pieces by every tokenizer that allows it, in windows not much longer than the pieces."""
    text = " ".join([LINES[line]] * 400)
    reader = PieceTokenizer(tokenizer_of(kind))

    def longest(text: LongText) -> int:
        return max(
            piece.stop - piece.begin for piece in text.pieces() if text.size(piece)
        )

    assert (reader.read(text, longest) < 10_000) == apart


@EACH
def test_long_texts(kind: str) -> None:
    """The tokens are equal for long prose, Chinese without spaces, code, and a run of letters longer than a piece."""
    rng = random.Random(kind)
    lines = [*LINES[:6], "字" * 9000, "a" * 9000 + " ", "12" * 5000, " " * 300]
    text = "".join(rng.choices(lines, weights=[40] * 6 + [1] * 4, k=1000))
    tokenizer = tokenizer_of(kind)
    assert (
        tokens_by_pieces(PieceTokenizer(tokenizer), text) == tokenizer.encode(text).ids
    )


def test_a_model_that_drops_merges_at_random_is_not_read_in_pieces() -> None:
    """Of BPE dropout two encodings of a text can differ, so the text stays whole."""
    tokenizer = Tokenizer.from_str(tokenizer_of("gpt_2").to_str())
    assert PieceTokenizer(tokenizer).is_local
    tokenizer.model.dropout = 0.2
    assert not PieceTokenizer(tokenizer).is_local


def _bpe(*merges: tuple[str, str]) -> Tokenizer:
    """Return a BPE of single letters and spaces without a pre-tokenizer, with merges."""
    letters = [*"abc ", *dict.fromkeys("".join(pair) for pair in merges)]
    return Tokenizer(
        models.BPE(
            {letter: number for number, letter in enumerate(letters)}, list(merges)
        )
    )


@pytest.mark.parametrize(
    ("merges", "is_apart"),
    [
        ([], True),
        ([("a", "b")], True),
        ([("a", " ")], False),
        ([("b", "a"), ("ba", " ")], False),
        ([(" ", "a")], True),
    ],
)
def test_a_place_in_a_word_is_a_boundary_if_no_merge_can_cross_it(
    merges: list[tuple[str, str]], is_apart: bool
) -> None:
    """Between two tokens of a word, a token of the vocabulary with both characters proves nothing, so the place is refused."""
    reader = PieceTokenizer(_bpe(*merges), 4)
    text = "ca ca ca ca"
    if is_apart:
        assert reader.tokens_before(text, 2) == 2
    else:
        with pytest.raises(NotApartError):
            reader.tokens_before(text, 2)


def test_a_vocabulary_proves_nothing_of_a_model_that_does_not_only_merge() -> None:
    """With a suffix at the end of words, a token depends on its place, so a place in a word is no boundary."""
    model = models.BPE(
        {"a": 0, "b": 1, " ": 2, "a</w>": 3, " </w>": 4, "b</w>": 5},
        [],
        end_of_word_suffix="</w>",
    )
    with pytest.raises(NotApartError):
        PieceTokenizer(Tokenizer(model), 2).tokens_before("ab ab", 2)
