"""`scenario_state.json` as a stream: one request state in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError

State = dict[str, Any]

# HELM indents by two, and a newline in a text is written \n: so these lines are those of the outermost brackets.
_LIST, _NO_LIST, _LIST_END = b'  "request_states": [\n', b'  "request_states": []', b"  ]"
_STATE, _STATE_END = b"    {\n", b"    }"


def rewrite_states(source: Path, target: Path, change: Callable[[State], State]) -> None:
    """Copy a `scenario_state.json`, its request states changed.

    Raises:
        InputError: the file is cut off, or not laid out as HELM writes it.
    """
    inside = whole = False
    with source.open("rb") as lines, target.open("wb") as copy:
        for line in lines:
            written = line
            if line == _LIST:
                inside = True
            elif inside and line == _STATE:
                state, end = _state(lines, source)
                written = json.dumps(change(state)).encode("ascii") + end
            elif line.startswith(_LIST_END if inside else _NO_LIST):
                inside, whole = False, True
            copy.write(written)
    if not whole:
        raise _damaged(source)


def _state(lines: Iterator[bytes], source: Path) -> tuple[State, bytes]:
    """A request state after its first line, and what follows its last brace."""
    parts = [b"{"]
    for line in lines:
        if line.startswith(_STATE_END):
            try:
                return json.loads(b"".join(parts) + b"}"), line.removeprefix(_STATE_END)
            except ValueError:
                break
        parts.append(line)
    raise _damaged(source)


def _damaged(source: Path) -> InputError:
    return InputError(f"{source} is not a whole file as HELM writes it; make that run again")
