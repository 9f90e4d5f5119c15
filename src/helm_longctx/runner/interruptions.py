"""Handles interruptions of a run: Ctrl-C, SIGTERM and a full disk. The run ends at once and says what it keeps."""

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.writing import DISK_FULL

_log = logging.getLogger(__name__)

_GRACE = 1.0
"""Seconds that the process has to close its files before it is ended by force."""


@contextmanager
def stoppable(summary: Callable[[], str], unwinds: bool = True) -> Iterator[None]:
    """Make Ctrl-C and SIGTERM print one line and end the process with status 130 or 143.

    Libraries may have threads that cannot be interrupted, so the process does not wait for them, and after `_GRACE`
    it ends by force. Nothing is lost: a run's answers are always on disk. Signals that the user's shell ignores stay
    ignored, and in an interactive Python prompt or a notebook Ctrl-C is left alone.

    Args:
        summary: says what is kept; it ends the printed line.
        unwinds: whether Python's `finally` blocks and functions for the end of the process run.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        # A second Ctrl-C must not interrupt the end.
        for handled_signal in handled:
            signal.signal(handled_signal, signal.SIG_IGN)
        # The log is not used, because the signal may have interrupted a log call that holds the lock.
        with suppress(OSError):
            os.write(
                2,
                f"\nhelm-longctx: stopped by {signal.Signals(number).name}: {summary()}\n".encode(),
            )
        if not unwinds:
            os._exit(128 + number)
        deadline = threading.Timer(_GRACE, os._exit, [128 + number])
        deadline.daemon = True
        deadline.start()
        # atexit runs the function that was registered last first. The interpreter's own shutdown would take seconds,
        # and threads that are still inside a library crash during it.
        atexit.register(_exit_now, 128 + number)
        raise SystemExit(128 + number)

    may_handle = threading.current_thread() is threading.main_thread() and not hasattr(
        sys, "ps1"
    )
    handled = [
        number
        for number, default in _DEFAULTS.items()
        if may_handle and signal.getsignal(number) is default
    ]
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in handled:
            if signal.getsignal(number) is stop:
                signal.signal(number, _DEFAULTS[number])


@contextmanager
def interruptible(summary: Callable[[], str]) -> Iterator[None]:
    """Make SIGTERM raise `KeyboardInterrupt` in the block, as Ctrl-C does, and log what is kept.

    This is for a process that belongs to the caller, whose `finally` blocks must run. The process is never ended, and
    a handler of the caller stays.

    Args:
        summary: says what is kept; it ends the logged line.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    is_main = threading.current_thread() is threading.main_thread()
    is_handled = is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    try:
        if is_handled:
            signal.signal(signal.SIGTERM, stop)
        yield
    except KeyboardInterrupt:
        # Of blocks in each other, the outer one handles the signal, and the inner one knows more.
        _log.warning("interrupted: %s", summary())
        raise
    finally:
        if is_handled and signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit_now(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


_DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


@contextmanager
def explain_full_disk(folder: Path, summary: str) -> Iterator[None]:
    """Raise an `InputError` of one line if a file cannot be written because the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        what = f"{error.filename or folder} cannot be written: {error.strerror}"
        raise InputError(
            f"{what}; {summary}; make room, then run the same command again"
        ) from error
