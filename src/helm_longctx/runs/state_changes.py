"""Finds in what a request state of HELM differs from the one that a record makes, and makes these changes again.

Records hold what has a meaning here as fields. What else a state of HELM has is kept as changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

StateChange = Sequence[Any]
"""A change of plain data: the path of a part, and its new value. A part without a new value is removed."""


def find_changes(
    before: Any, after: Any, path: tuple[str | int, ...] = ()
) -> Iterator[StateChange]:
    """Yield the changes that make plain data equal to other plain data."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() - after.keys():
            yield [[*path, name]]
        for name, value in after.items():
            if name not in before:
                yield [[*path, name], value]
            elif not _is_same_leaf(before[name], value):
                yield from find_changes(before[name], value, (*path, name))
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
    ):
        for number, value in enumerate(after):
            if not _is_same_leaf(before[number], value):
                yield from find_changes(before[number], value, (*path, number))
    elif not _is_same_leaf(before, after):
        yield [[*path], after]


_LEAVES = (str, int, float, bool, type(None))


def _is_same_leaf(before: Any, after: Any) -> bool:
    """Whether two values are no objects or lists, and equal. 1, 1.0 and True differ in JSON."""
    return type(before) is type(after) and type(after) in _LEAVES and before == after


def apply_change(change: StateChange, content: Any) -> None:
    """Apply a change to plain data."""
    (*parents, name), *value = change
    for parent in parents:
        content = content[parent]
    if value:
        content[name] = value[0]
    else:
        del content[name]
