"""Lets one call of `evaluate` work at a time, because HELM's registries and logs are one for a process."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import thread as thread_pools
from contextlib import contextmanager
from types import FrameType
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.models.objects import is_asked, list_asked_threads

_log = logging.getLogger(__name__)

_NESTED = "evaluate: a function that a call of evaluate asks cannot call evaluate itself; call it afterwards"

_PAUSE = 1.0
"""Seconds between two looks at whether the call that works waits for the one that waits for it."""


class _Turn:
    """Whose turn it is."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder: int | None = None


_turn = _Turn()


@contextmanager
def take_turn() -> Iterator[None]:
    """Wait until no other call of this process works, and work while the block runs.

    What a thread waits for by its own `Event` or `Queue` cannot be known. Such a call is made when the wait is given up.

    Raises:
        InputError: the call is made by a function that another call asks, in its thread, or in one that it waits for by
            `join` or a `Future`, so that both would wait.
    """
    if is_asked() or _turn.holder == threading.get_ident():
        raise InputError(_NESTED)
    turn = _turn
    if not turn.lock.acquire(blocking=False):
        _log.warning("evaluate waits for another call of this process")
        while not turn.lock.acquire(timeout=_PAUSE):
            if _is_awaited(threading.current_thread(), list_asked_threads()):
                raise InputError(_NESTED)
    try:
        turn.holder = threading.get_ident()
        yield
    finally:
        turn.holder = None
        turn.lock.release()


def _is_awaited(thread: threading.Thread, waiting: set[int]) -> bool:
    """Return whether one of some threads waits until a thread has ended or has computed a `Future`, or would by others.

    Args:
        waiting: the identifiers of the threads.
    """
    frames = sys._current_frames()
    stacks = {}
    for ident, frame in frames.items():
        stacks[ident] = [*_iterate_frames(frame)]
    seen: set[int] = set()
    while waiting:
        seen |= waiting
        awaited = []
        for ident in waiting:
            awaited.extend(_find_waits(stacks.get(ident, [])))
        if any(wait is thread for wait in awaited):
            return True
        computing = set()
        for ident, stack in stacks.items():
            for computation in _find_computations(stack):
                if any(computation is future for future in awaited):
                    computing.add(ident)
        if thread.ident in computing:
            return True
        ended = set()
        for wait in awaited:
            if isinstance(wait, threading.Thread):
                ended.add(wait.ident)
        waiting = {ident for ident in computing | ended if ident is not None} - seen
    return False


def _iterate_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _find_waits(stack: list[FrameType]) -> list[Any]:
    """Return the threads and futures that a thread waits for."""
    awaited: list[Any] = []
    for frame in stack:
        code = frame.f_code
        if code in (threading.Thread.join.__code__, futures.Future.result.__code__):
            awaited.append(frame.f_locals.get("self"))
        elif code is futures.wait.__code__:
            awaited += [*frame.f_locals.get("fs", ())]
        elif code is futures.as_completed.__code__:
            awaited += [*frame.f_locals.get("pending", ())]
    return awaited


def _find_computations(stack: list[FrameType]) -> list[Any]:
    """Return the futures that a thread computes."""
    run = thread_pools._WorkItem.run.__code__
    items = []
    for frame in stack:
        if frame.f_code is run:
            items.append(frame.f_locals.get("self"))
    return [item.future for item in items if item is not None]


def _start_anew() -> None:
    global _turn
    _turn = _Turn()


# A copy of the process does not have the thread that holds the lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
