"""Tests of chunks and of their choice by BM25."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.tasks.methods.chunks import GAP, find_best, find_words, join, split

TEXTS = st.text(st.sampled_from("abc .\n。中文字กข\u2028é-"), max_size=400) | st.text(
    max_size=200
)


@given(TEXTS, st.integers(1, 60))
def test_chunks_are_the_text(text: str, size: int) -> None:
    """Joined, the chunks are the text; none is empty or larger than the size."""
    chunks = split(text, size)
    assert "".join(chunks) == text
    assert all(0 < len(chunk) <= size for chunk in chunks)
    assert join(chunks, range(len(chunks))) == text


@given(TEXTS, st.integers(2, 60))
def test_chunks_fill_their_room(text: str, size: int) -> None:
    """Only the last chunk can have less than half of its room, so the chunks are few."""
    assert all(len(chunk) >= size // 2 for chunk in split(text, size)[:-1])


@given(TEXTS, TEXTS, st.integers(1, 60), st.integers(1, 5))
def test_any_text_can_be_searched(
    text: str, question: str, size: int, most: int
) -> None:
    """As many chunks as wanted are chosen, each once and in the order of the text."""
    chunks = split(text, size)
    places = find_best(chunks, question, most)
    assert places == sorted(set(places))
    assert len(places) == min(most, len(chunks))
    assert all(0 <= position < len(chunks) for position in places)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("One. Two.\n\nThree.\nFour five", ["One. Two.\n\n", "Three.\n", "Four five"]),
        ("One two. Three four five", ["One two. ", "Three four ", "five"]),
        ("一二三四五六七。八九十一二三", ["一二三四五六七。", "八九十一二三"]),
        ("x" * 25, ["x" * 12, "x" * 12, "x"]),
        ("", []),
    ],
)
def test_chunks_end_where_texts_do(text: str, chunks: list[str]) -> None:
    """A chunk ends after a paragraph, else after a line, a sentence or a word, and else where its room ends."""
    assert split(text, 12) == chunks


def test_the_matching_chunks_are_found() -> None:
    """The chunks with the question's words are chosen, in English and in Chinese, whatever their case."""
    english = [
        "the pump is red",
        "Ada sent the PUMP to Rome",
        "rain fell",
        "Ada lives in Rome",
    ]
    assert find_best(english, "Who sent the pump to Rome?", 1) == [1]
    assert find_best(english, "Where does Ada live? In Rome?", 2) == [1, 3]
    chinese = ["今天下雨了。", "阿达把水泵送到罗马。", "水很冷。"]
    assert find_best(chinese, "谁送了水泵？", 1) == [1]


def test_without_a_match_the_first_chunks_count() -> None:
    """A question without words, or with words that no chunk has, gets the first chunks."""
    for question in ("", "?!", "zebra"):
        assert find_best(["one", "two", "three"], question, 2) == [0, 1]
    assert find_best(["...", "!!!"], "one", 1) == [0]


def test_words() -> None:
    """Words are in lower case; scripts without spaces give each two neighbouring characters."""
    assert list(find_words("The key 4f-A2 é")) == ["the", "key", "4f", "a2", "é"]
    assert list(find_words("罗马城 x 中")) == ["罗马", "马城", "x", "中"]


def test_gaps_are_marked() -> None:
    """Neighbouring chunks are joined as in the text, and others are separated by a mark."""
    chunks = ["a. ", "b. ", "c. ", "d. "]
    assert join(chunks, [0, 1, 3]) == f"a. b. {GAP}d. "
    assert join(chunks, [2]) == "c. "
