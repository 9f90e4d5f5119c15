"""Ends a command or a call after Ctrl-C or SIGTERM, and says what is kept. All that asks ends by this rule.

Nothing more is sent. Answers in flight are paid for, so they are waited for: until a second before a command ends by
force, and `SETTLE` seconds in a process of the user.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_log = logging.getLogger(__name__)

SETTLE = 10.0
"""Seconds to wait for calls in flight when the others are given up, so that their answers are kept."""

_MOST = 3.0
"""Seconds after a signal until a command is ended by force."""

_CLOSING = 1.0
"""The last ones of these seconds, in which files are closed."""

_DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


@dataclass(frozen=True, eq=False)
class _Work:
    """What is done in a block of `stoppable`."""

    summary: Callable[[], str] | None
    unwinds: bool


_blocks: list[_Work] = []
"""The blocks that the process is in, the outer ones first."""

_end: float | None = None
"""The time on the monotonic clock at which the process is ended by force. None without a signal."""


def describe_kept(path: Path) -> str:
    """Return what a command says that keeps its answers in a file or a folder."""
    return (
        f"what was answered is kept in {path}; run the same command again to continue"
    )


def seconds_to_settle() -> float:
    """Return how long calls in flight may still be waited for, when the others are given up."""
    if _end is None:
        return SETTLE
    return max(0.0, _end - _CLOSING - time.monotonic())


@contextmanager
def stoppable(
    summary: Callable[[], str] | None = None,
    unwinds: bool = True,
) -> Iterator[None]:
    """Make Ctrl-C and SIGTERM print one line and end the process with status 130 or 143.

    Python's `finally` blocks and functions for the end of the process run, and answers in flight are waited for.
    Libraries may have threads that cannot be interrupted, so the process ends by force after `_MOST` seconds. Nothing
    is lost: all answers that have arrived are on disk. Signals that the user's shell ignores stay ignored, and in an
    interactive Python prompt or a notebook Ctrl-C is left alone.

    Blocks can be in each other: our command line is one, and a run is another one in it.

    Args:
        summary: says what is kept; it ends the printed line. Of blocks in each other the outer one
            counts.
        unwinds: whether the process does not end at once, but as described. It does if all blocks say so.
    """
    may_handle = threading.current_thread() is threading.main_thread() and not hasattr(
        sys, "ps1"
    )
    handled = [
        number
        for number, default in _DEFAULTS.items()
        if may_handle and signal.getsignal(number) is default
    ]
    work = _Work(summary, unwinds)
    _blocks.append(work)
    for number in handled:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in handled:
            if signal.getsignal(number) is _stop:
                signal.signal(number, _DEFAULTS[number])
        _blocks.remove(work)


def _stop(number: int, frame: FrameType | None) -> None:
    global _end
    # A second Ctrl-C must not interrupt the end.
    for handled in _DEFAULTS:
        if signal.getsignal(handled) is _stop:
            signal.signal(handled, signal.SIG_IGN)
    # The log is not used, because the signal may have interrupted a log call that holds the lock.
    with suppress(OSError):
        os.write(2, f"\n{_describe_end(number)}\n".encode())
    status = 128 + number
    if not all(work.unwinds for work in _blocks):
        os._exit(status)
    _end = time.monotonic() + _MOST
    deadline = threading.Timer(_MOST, os._exit, [status])
    deadline.daemon = True
    deadline.start()
    # atexit runs the function that was registered last first. The interpreter's own shutdown would take seconds, and
    # threads that are still inside a library crash during it.
    atexit.register(_exit_now, status)
    raise SystemExit(status)


def _describe_end(number: int) -> str:
    text = f"helm-longctx: stopped by {signal.Signals(number).name}"
    for work in _blocks:
        if work.summary is not None:
            return f"{text}: {work.summary()}"
    return text


def _exit_now(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


@contextmanager
def interruptible(summary: Callable[[], str]) -> Iterator[None]:
    """Make SIGTERM raise `KeyboardInterrupt` in the block, as Ctrl-C does, and log what is kept.

    This is for a process that belongs to the caller, whose `finally` blocks must run. The process is never ended, and
    a handler of the caller stays.

    Args:
        summary: says what is kept; it ends the logged line.
    """
    is_main = threading.current_thread() is threading.main_thread()
    is_handled = is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    try:
        if is_handled:
            signal.signal(signal.SIGTERM, _interrupt)
        yield
    except KeyboardInterrupt:
        # Of blocks in each other, the outer one handles the signal, and the inner one knows more.
        _log.warning("interrupted: %s", summary())
        raise
    finally:
        if is_handled and signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


_fork = threading.local()
"""The signals that a thread does not get anyway, while it makes a fork."""


def _hold_sigterm() -> None:
    """Let a SIGTERM for a fork wait until it can handle it: Python forgets signals that come while a fork begins."""
    _fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def _release_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _fork.mask)


def _end_fork_as_usual() -> None:
    """Give a fork the handlers that a process has without this module.

    One of HELM's scenarios reads its data in a pool of processes, and ends them by SIGTERM. They ask nothing, and have
    nothing to keep.
    """
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) in (_stop, _interrupt):
            signal.signal(number, default)
    _release_sigterm()


os.register_at_fork(
    before=_hold_sigterm,
    after_in_parent=_release_sigterm,
    after_in_child=_end_fork_as_usual,
)
