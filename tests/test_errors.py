"""Errors that users read."""

from __future__ import annotations

import pytest

from helm_longctx.errors import bad_argument, is_format_error, list_choices

TASKS = ["json_kv", "ruler_niah_mk_2", "nq"]


@pytest.mark.parametrize(
    ("value", "nearest"), [("json_vk", "json_kv"), ("JSON_KV", "json_kv"), ("niah_mk_2", "ruler_niah_mk_2")]
)
def test_a_typo_gets_the_nearest_name(value: str, nearest: str) -> None:
    """The suggestion follows what is allowed."""
    assert str(bad_argument("helmet_recall", "task", value, TASKS)) == (
        f"helmet_recall: task={value!r} is not allowed; allowed: json_kv, ruler_niah_mk_2, nq; did you mean {nearest}?"
    )


@pytest.mark.parametrize("value", ["", "x", 7, None, "trec_coarse", "json_kv" * 1_000_000])
def test_what_is_like_no_name_gets_no_suggestion(value: object) -> None:
    """Nor does a value of any type or size break the message."""
    assert list_choices(value, TASKS) == "json_kv, ruler_niah_mk_2, nq"


def test_errors_of_data() -> None:
    """Also within groups, which HELM's reader of run files raises; not those of the machine, nor a wish to stop."""

    class GroupError(Exception):
        exceptions = (TypeError(), OSError())

    assert all(map(is_format_error, (KeyError(), UnicodeError(), OverflowError(), RecursionError(), GroupError())))
    assert not any(map(is_format_error, (OSError(), MemoryError(), KeyboardInterrupt(), RuntimeError())))
