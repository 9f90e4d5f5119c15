"""Finds in what a request state of HELM differs from the one that a record makes, and makes these changes again.

Records hold what has a meaning here as fields. What else a state of HELM has is kept as changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

StateChange = Sequence[Any]
"""A change of plain data: the path of a part, and its new value. A part without a new value is removed."""

_SORTED = orjson.OPT_SORT_KEYS


def find_changes(before: Any, after: Any) -> list[StateChange]:
    """Return the changes that make plain data equal to other plain data."""
    changes: list[StateChange] = []
    if not _has_same_text(before, after):
        _add_changes(changes, before, after, ())
    return changes


def _has_same_text(before: Any, after: Any) -> bool:
    """Whether two values are the same text in JSON, as nearly all are. To look at each part takes ten times as long."""
    try:
        text = orjson.dumps(after, option=_SORTED)
        # NaN is a null, too.
        return b"null" not in text and text == orjson.dumps(before, option=_SORTED)
    except TypeError:  # a lone surrogate
        return False


def _add_changes(
    changes: list[StateChange],
    before: Any,
    after: Any,
    path: tuple[str | int, ...],
) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            if name not in after:
                changes.append([[*path, name]])
        for name, value in after.items():
            if name not in before:
                changes.append([[*path, name], value])
            elif not _is_same_leaf(before[name], value):
                _add_changes(changes, before[name], value, (*path, name))
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
    ):
        for number, value in enumerate(after):
            if not _is_same_leaf(before[number], value):
                _add_changes(changes, before[number], value, (*path, number))
    elif not _is_same_leaf(before, after):
        changes.append([[*path], after])


_LEAVES = frozenset((str, int, float, bool, type(None)))


def _is_same_leaf(before: Any, after: Any) -> bool:
    """Whether two values are no objects or lists, and equal. 1, 1.0 and True differ in JSON."""
    kind = type(after)
    return kind is type(before) and kind in _LEAVES and bool(before == after)


def apply_change(change: StateChange, content: Any) -> None:
    """Apply a change to plain data."""
    (*parents, name), *value = change
    for parent in parents:
        content = content[parent]
    if value:
        content[name] = value[0]
    else:
        del content[name]
