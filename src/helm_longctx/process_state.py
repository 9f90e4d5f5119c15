"""Gives the state of a process back at the end of a command or of a call of `evaluate`.

HELM's registries, loggers and some libraries are one for a process. A program can run several commands and calls, one
after the other, and other code of its own. What one of them has changed must not change the others: their models, their
log, the limits of what they send.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

_ends: ExitStack | None = None
_lasting = ExitStack()
"""Changes that stay until the process ends."""

atexit.register(_lasting.close)

_is_idle = False


@contextmanager
def giving_back() -> Iterator[None]:
    """Undo at the end of the block what `change_until_end` and `undo_at_end` have got in it."""
    global _ends
    before = _ends
    with ExitStack() as ends:
        _ends = ends
        try:
            yield
        finally:
            _ends = before


def change_until_end(change: AbstractContextManager[object]) -> None:
    """Enter a context, and leave it when the command or the call ends. In a process of HELM's own commands it stays."""
    ends = _lasting if _ends is None else _ends
    ends.enter_context(change)


def undo_at_end(undo: Callable[[], object]) -> None:
    """Call a function when the command or the call ends. In a process of HELM's own commands it is not called."""
    if _ends is not None:
        _ends.callback(undo)


@contextmanager
def lending_process() -> Iterator[None]:
    """Leave the process idle after the block, which is a call in a process of the user."""
    begin_work()
    try:
        yield
    finally:
        global _is_idle
        _is_idle = True


def begin_work() -> None:
    """Say that the process works for us."""
    global _is_idle
    _is_idle = False


def is_idle() -> bool:
    """Return whether the process is a user's, and no call of ours works in it. Then our patches of HELM have no effect."""
    return _is_idle
