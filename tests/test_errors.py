"""Tests of errors that users read."""

from __future__ import annotations

import pytest

from helm_longctx.errors import (
    bad_argument,
    describe_count,
    is_format_error,
    list_choices,
)

TASKS = ["json_kv", "ruler_niah_mk_2", "nq"]


@pytest.mark.parametrize(
    ("value", "nearest"),
    [("json_vk", "json_kv"), ("JSON_KV", "json_kv"), ("niah_mk_2", "ruler_niah_mk_2")],
)
def test_a_typo_gets_the_nearest_name(value: str, nearest: str) -> None:
    """The error for a typo suggests the nearest name before it lists all names."""
    assert str(bad_argument("helmet_recall", "task", value, TASKS)) == (
        f"helmet_recall: task={value!r} is invalid; did you mean {nearest}? Choose from json_kv, ruler_niah_mk_2, nq"
    )


@pytest.mark.parametrize(
    "value", ["", "x", 7, None, "trec_coarse", "json_kv" * 1_000_000]
)
def test_what_is_like_no_name_gets_no_suggestion(value: object) -> None:
    """A value that is like no name gets no suggestion, whatever its type and size."""
    assert list_choices(value, TASKS) == "choose from json_kv, ruler_niah_mk_2, nq"


def test_errors_of_data() -> None:
    """Errors of data are recognised, also in groups, and errors of the machine and a wish to stop are not among them."""

    class GroupError(Exception):
        exceptions = (TypeError(), OSError())

    assert all(
        map(
            is_format_error,
            (
                KeyError(),
                UnicodeError(),
                OverflowError(),
                RecursionError(),
                GroupError(),
            ),
        )
    )
    assert not any(
        map(
            is_format_error,
            (OSError(), MemoryError(), KeyboardInterrupt(), RuntimeError()),
        )
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1000, "1,000 runs")],
)
def test_one_thing_is_singular(number: int, text: str) -> None:
    """A noun is singular after the number one, and plural after all others."""
    assert describe_count(number, "run") == text
