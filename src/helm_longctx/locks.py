"""One process at a time, where the disk can do that."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from helm_longctx.errors import InputError

LOCK = ".lock"
"""The lock file of a run's folder. It stays there: a file that is removed can be locked by two processes."""

HOLDER = ".lock.holder"
"""Says which process holds the lock. Some versions of filelock truncate the lock file, so this is another file."""

_log = logging.getLogger(__name__)


@contextmanager
def hold_lock(
    path: Path, otherwise: str, timeout: float = -1, busy: Callable[[], InputError] | None = None
) -> Iterator[None]:
    """Hold the lock that is the file `path`. Where it cannot be had the block runs without it, and that is logged.

    Args:
        otherwise: what not having it means.
        timeout: seconds to wait; below 0 for ever.
        busy: the error to raise if another process holds the lock for so long; None to go on without it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=timeout)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except (NotImplementedError, OSError) as error:
        if busy and isinstance(error, Timeout):
            raise busy() from error
        _log.warning("%s: %s cannot be locked (%s)", otherwise, path, type(error).__name__)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder. The system releases it when the process ends, however that happens.

    Args:
        folder: is made if it is not there.

    Raises:
        InputError: another process holds the lock; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / HOLDER

    def busy() -> InputError:
        return InputError(f"{folder} is in use by {_read_holder(holder)}; wait until that process ends, or end it")

    with hold_lock(folder / LOCK, "another process can make the same run", timeout=0, busy=busy):
        with suppress(OSError):  # the disk is full or read-only: the lock holds without the note
            holder.write_text(_this_process(), encoding="utf-8")
        try:
            yield
        finally:
            with suppress(OSError):
                holder.unlink()


def _this_process() -> str:
    return f"process {os.getpid()} on host {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S %z')}"


def _read_holder(holder: Path) -> str:
    """What the holder wrote; it may be about to write."""
    with suppress(OSError, UnicodeError):
        return holder.read_text(encoding="utf-8") or "another process"
    return "another process"
