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
            if name in before:
                yield from find_changes(before[name], value, (*path, name))
            else:
                yield [[*path, name], value]
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
    ):
        for number, value in enumerate(after):
            yield from find_changes(before[number], value, (*path, number))
    elif type(before) is not type(after) or before != after:
        yield [[*path], after]


def apply_change(change: StateChange, content: Any) -> None:
    """Apply a change to plain data."""
    (*parents, name), *value = change
    for parent in parents:
        content = content[parent]
    if value:
        content[name] = value[0]
    else:
        del content[name]
