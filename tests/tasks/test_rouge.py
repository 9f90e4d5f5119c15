"""ROUGE-L equals that of the package rouge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge import Rouge

from helm_longctx.protocol.rouge import MOST_STEPS, rouge_l

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", ".", "e.f", "..", "\n", "和"]), max_size=30).map(" ".join)


def package(prediction: str, reference: str) -> float:
    """As the official code calls it: whatever is raised is 0."""
    try:
        return Rouge().get_scores([prediction], [reference], avg=True)["rouge-l"]["f"]
    except (ValueError, RecursionError):
        return 0.0


@given(WORDS | st.text(max_size=30), WORDS | st.text(max_size=30))
def test_equals_the_package(prediction: str, reference: str) -> None:
    """On few words, where many subsequences are equally long, and on any text."""
    assert rouge_l(prediction, reference) == package(prediction, reference)


@pytest.mark.parametrize(("prediction", "reference"), [("a a b", "a b a"), ("a b a", "a a b"), ("b a a", "a b a")])
def test_ties(prediction: str, reference: str) -> None:
    """Which of two longest subsequences is taken decides how many distinct words are shared."""
    assert rouge_l(prediction, reference) == package(prediction, reference)


@pytest.mark.parametrize(("prediction", "reference"), [("", "a"), ("a", ""), (".", "a"), ("...", "...")])
def test_texts_without_a_sentence(prediction: str, reference: str) -> None:
    """The package raises."""
    assert rouge_l(prediction, reference) == 0


def test_long_texts() -> None:
    """A long walk through the table scores 0, at any depth of the caller's stack; long texts alone do not."""

    def at_depth(depth: int, words: int) -> float:
        text = " ".join(map(str, range(words)))
        return at_depth(depth - 1, words) if depth else rouge_l(text, text)

    for depth in (0, 400):
        assert at_depth(depth, MOST_STEPS) > 0.99
        assert at_depth(depth, MOST_STEPS + 1) == 0
    assert rouge_l(" ".join(map(str, range(30_000))), "29999 x") > 0
