"""File locks between processes, on disks that support them."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from helm_longctx.errors import InputError

LOCK = ".lock"
"""Lock file of a run's folder. If it were removed alone, two processes could lock two different files of this name."""

_HOLDER = ".lock.holder"
"""File that names the process that holds the lock. Some versions of filelock truncate the lock file itself."""

_log = logging.getLogger(__name__)


@contextmanager
def hold_lock(
    path: Path,
    otherwise: str,
    timeout: float = -1,
    busy: Callable[[], InputError] | None = None,
) -> Iterator[bool]:
    """Hold the lock file `path` while the block runs. If the file cannot be locked, log a warning and run the block.

    The block gets whether the lock is held.

    Args:
        path: the lock file; its folder is created.
        otherwise: what can happen without the lock, for the warning.
        timeout: seconds to wait for the lock; a negative number means no limit.
        busy: makes the error that is raised after the timeout. If it is None, the block then runs without the lock.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=timeout)
    try:
        path.parent.mkdir(
            mode=0o700,
            parents=True,
            exist_ok=True,
        )
        lock.acquire()
    except (NotImplementedError, OSError) as error:
        # filelock's Timeout is an OSError, so it also gets here if `busy` is None.
        if busy and isinstance(error, Timeout):
            raise busy() from error
        # NotImplementedError: the file system has no locks.
        _log.warning(
            "%s: %s cannot be locked (%s)", otherwise, path, type(error).__name__
        )
    try:
        yield lock.is_locked
    finally:
        lock.release()


@contextmanager
def lock_run(folder: Path, timeout: float = 0) -> Iterator[None]:
    """Hold the lock of a run's folder while the block runs. The system also releases it if the process is killed.

    The folder is created if necessary, and removed if the block leaves nothing in it. Raises an `InputError` that
    names the other process if it holds the lock for `timeout` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / _HOLDER

    def busy() -> InputError:
        name = ""
        with suppress(
            OSError, UnicodeError
        ):  # the holder may not have written its name yet
            name = holder.read_text(encoding="utf-8")
        return InputError(
            f"{folder} is in use by {name or 'another process'}; wait until that"
            " process ends, or end it"
        )

    with hold_lock(
        folder / LOCK, "another process can make the same run", timeout, busy
    ):
        with suppress(
            OSError
        ):  # on a full or read-only disk the lock works without the holder's name
            name = f"process {os.getpid()} on host {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S %z')}"
            holder.write_text(name, encoding="utf-8")
        try:
            yield
        # The name is removed while the lock is still held. Afterwards the file could have the next holder's name.
        finally:
            with suppress(OSError):
                holder.unlink()
                # HELM's summarizer warns of a run's folder that has nothing but the lock.
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
                    folder.rmdir()
