"""Tests that our ROUGE-L equals the ROUGE-L of the package rouge."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge import Rouge

from helm_longctx.tasks.words import MOST_STEPS, rouge_l

WORDS = st.lists(
    st.sampled_from(["a", "b", "c", "d", ".", "e.f", "..", "\n", "和"]), max_size=30
).map(" ".join)


def package(prediction: str, reference: str) -> float:
    """Return the package's score as the official code computes it, with 0 for any error."""
    try:
        return Rouge().get_scores([prediction], [reference], avg=True)["rouge-l"]["f"]
    except (ValueError, RecursionError):
        return 0.0


@given(WORDS | st.text(max_size=30), WORDS | st.text(max_size=30))
def test_equals_the_package(prediction: str, reference: str) -> None:
    """Scores are equal on few words with many equally long subsequences, and on any text."""
    assert rouge_l(prediction, reference) == package(prediction, reference)


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [("a a b", "a b a"), ("a b a", "a a b"), ("b a a", "a b a")],
)
def test_ties(prediction: str, reference: str) -> None:
    """Scores are equal where the choice between two longest subsequences changes the number of shared words."""
    assert rouge_l(prediction, reference) == package(prediction, reference)


@pytest.mark.parametrize(
    ("prediction", "reference"), [("", "a"), ("a", ""), (".", "a"), ("...", "...")]
)
def test_texts_without_a_sentence(prediction: str, reference: str) -> None:
    """A text without a sentence, for which the package raises an error, scores 0."""
    assert rouge_l(prediction, reference) == 0


def test_long_texts() -> None:
    """A long walk through the table scores 0 at any depth of the caller's stack, but long texts alone do not."""

    def at_depth(depth: int, words: int) -> float:
        text = " ".join(map(str, range(words)))
        return at_depth(depth - 1, words) if depth else rouge_l(text, text)

    for depth in (0, 400):
        assert at_depth(depth, MOST_STEPS) > 0.99
        assert at_depth(depth, MOST_STEPS + 1) == 0
    assert rouge_l(" ".join(map(str, range(30_000))), "29999 x") > 0


@pytest.mark.parametrize("unit", [". ", "a. ", "Paris is. ", "word "])
def test_an_answer_that_repeats_itself(unit: str) -> None:
    """An answer of half a million characters is scored soon, however many sentences it has."""
    reference = "Paris is the capital. It is in France. " * 10
    start = time.process_time()
    rouge_l(unit * (500_000 // len(unit)), reference)
    assert time.process_time() - start < 5
    short = unit * 30
    assert rouge_l(short, reference) == package(short, reference)
