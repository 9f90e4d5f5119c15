"""Lets one call of `evaluate` work at a time, because HELM's registries and logs are one for a process."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from helm_longctx.errors import InputError
from helm_longctx.models.objects import is_asked

_log = logging.getLogger(__name__)


class _Turn:
    """Whose turn it is."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holder: int | None = None


_turn = _Turn()


@contextmanager
def take_turn() -> Iterator[None]:
    """Wait until no other call of this process works, and work while the block runs.

    Raises:
        InputError: the call is made by a function that another call asks, or in its thread, so that both would wait.
    """
    if is_asked() or _turn.holder == threading.get_ident():
        raise InputError(
            "evaluate: a function that a call of evaluate asks cannot call evaluate itself; call it afterwards"
        )
    turn = _turn
    if not turn.lock.acquire(blocking=False):
        _log.warning("evaluate waits for another call of this process")
        turn.lock.acquire()
    try:
        turn.holder = threading.get_ident()
        yield
    finally:
        turn.holder = None
        turn.lock.release()


def _start_anew() -> None:
    global _turn
    _turn = _Turn()


# A copy of the process does not have the thread that holds the lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
