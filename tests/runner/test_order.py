"""Tests that requests with a common prefix follow each other."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.runner.prefixes import STEP, order_by_prefix, prefix_keys

blocks = st.lists(st.sampled_from("abc"), min_size=0, max_size=4)


def prompt(letters: list[str], rest: str = "") -> str:
    return "".join(letter * STEP for letter in letters) + rest


@given(st.lists(blocks, max_size=12))
def test_a_shared_prefix_is_one_group(prompts: list[list[str]]) -> None:
    """No other prompt is between prompts that share a prefix."""
    texts = [prompt(letters, f"?{number}") for number, letters in enumerate(prompts)]
    order = order_by_prefix(prefix_keys(texts))
    assert sorted(order) == list(range(len(texts)))
    for text in texts:
        for size in range(STEP, len(text), STEP):
            places = [
                position
                for position, number in enumerate(order)
                if texts[number].startswith(text[:size])
            ]
            assert places == list(range(places[0], places[0] + len(places)))


def test_what_shares_nothing_keeps_its_order() -> None:
    """Prompts with nothing in common keep their order."""
    assert order_by_prefix(
        prefix_keys(os.urandom(9).hex() * STEP for _ in range(20))
    ) == list(range(20))


def test_a_book_and_its_questions() -> None:
    """Each book's questions follow each other in their order, at the place of the book's first question."""
    book = "x" * (3 * STEP)
    other = "x" * STEP + "y" * (2 * STEP)
    assert order_by_prefix(
        prefix_keys([book + "1", other + "1", book + "2", other + "2"])
    ) == [
        0,
        2,
        1,
        3,
    ]
