"""Tests that lengths are written and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.tasks.lengths import STANDARD, length_label, parse_length


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("8k", 8192),
        ("8K", 8192),
        (131072, 131072),
        ("131072", 131072),
        ("1m", 2**20),
        ("5000", 5000),
        ("0.5k", 512),
        ("2m", 2**21),
        ("0k", 0),
        (0, 0),
    ],
)
def test_forms(text: str | int, tokens: int) -> None:
    """A label in upper or lower case and a number mean the same length."""
    assert parse_length(text) == tokens


@given(st.just(0) | st.integers(250, 2**24))
def test_labels_are_read_back(tokens: int) -> None:
    """The label of a length is read as that length."""
    assert parse_length(length_label(tokens)) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k",
        "8 k",
        "8kk",
        "-8k",
        "00",
        "249",
        False,
        "17m",
        "1e5",
        "8.5k",
        "8g",
        8.5,
        None,
        True,
    ],
)
def test_what_is_no_length(text: object) -> None:
    """Any other text is refused with a list of lengths."""
    with pytest.raises(InputError, match="give 4k, 8k"):
        parse_length(text)  # type: ignore[arg-type]


def test_standard_labels() -> None:
    """The standard lengths have their own labels."""
    assert {length_label(tokens): tokens for tokens in STANDARD.values()} == STANDARD
