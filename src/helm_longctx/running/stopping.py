"""Ctrl-C and SIGTERM end a run at once, whatever its threads are doing."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

GRACE = 1.0
"""Seconds that a process has to close its files; then it is ended."""


@contextmanager
def stoppable(summary: Callable[[], str]) -> Iterator[None]:
    """Within the block Ctrl-C and SIGTERM print one line and end the process with status 130 or 143.

    Libraries may hold threads that nothing can interrupt, so the process ends without waiting for them, and one that is
    not that far after `GRACE` ends as if killed: what a run keeps is on disk at any time. Signals that the user's shell
    ignores stay ignored, and a Python prompt or notebook keeps its own Ctrl-C.

    Args:
        summary: what is kept, for the line.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        for each in replaced:
            signal.signal(each, signal.SIG_IGN)
        # Not by the log, in whose middle the signal may have come.
        with suppress(OSError):
            os.write(2, f"\nhelm-longctx: stopped by {signal.Signals(number).name}: {summary()}\n".encode())
        deadline = threading.Timer(GRACE, os._exit, [128 + number])
        deadline.daemon = True
        deadline.start()
        # Last registered, first called: what the interpreter takes apart at its end takes seconds, and threads that
        # are still in a library crash in it.
        atexit.register(_leave, 128 + number)
        raise SystemExit(128 + number)

    in_charge = threading.current_thread() is threading.main_thread() and not hasattr(sys, "ps1")
    replaced = [number for number, theirs in _DEFAULT.items() if in_charge and signal.getsignal(number) is theirs]
    for number in replaced:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is stop:
                signal.signal(number, _DEFAULT[number])


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


_DEFAULT: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
