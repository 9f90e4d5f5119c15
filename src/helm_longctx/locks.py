"""One process at a time, where the disk can do that."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_log = logging.getLogger(__name__)


@contextmanager
def locked(path: Path, otherwise: str, timeout: float = -1) -> Iterator[None]:
    """Hold the lock that is the file `path`. Where it cannot be had the block runs without it, and that is logged.

    Args:
        otherwise: what not having it means.
        timeout: seconds to wait; below 0 for ever.
    """
    from filelock import FileLock

    lock = FileLock(path, timeout=timeout)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except (NotImplementedError, OSError) as error:
        _log.warning("%s: %s cannot be locked (%s)", otherwise, path, type(error).__name__)
    try:
        yield
    finally:
        lock.release()
