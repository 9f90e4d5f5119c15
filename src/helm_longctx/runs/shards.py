"""Shards: the parts of a run that several processes make. Each process holds the lock of its shard."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from helm.common.hierarchical_logger import hlog

from helm_longctx.errors import InputError
from helm_longctx.locks import hold_lock, lock_run
from helm_longctx.runs.journal import SHARDS

LOCK_WAIT = 10.0
"""Seconds to wait for the lock of a run's folder, which other shards hold only while they start."""

_UNLOCKED = "another process can send the same requests"


@dataclass(frozen=True, order=True)
class Shard:
    """A part of a run."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard such as `2/4`. Raises an `InputError` if it has another form or is out of range."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.number <= shard.total:
            raise InputError(f"shard {text!r} is invalid; give 1/N to N/N, for example 2/4")
        return shard


class _BusyError(InputError):
    pass


def process_name() -> str:
    """Return a name for this process that no other process has."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@contextmanager
def lock_shard(run_path: Path, shard: Shard) -> Iterator[None]:
    """Hold the lock of a shard in the block, or raise an `InputError` if another process makes the whole run.

    The system releases the lock when the process ends, also if it is killed.
    """
    path = run_path / SHARDS / f"{shard.number}-of-{shard.total}.lock"
    with ExitStack() as lock:
        is_held = False
        while not is_held:
            # A process that makes the whole run holds the run's lock, and looks for shards only once.
            with lock_run(run_path, LOCK_WAIT), suppress(_BusyError):
                # A process whose shard failed can have removed the run's folder while this one waited for the lock.
                path.parent.mkdir(parents=True, exist_ok=True)
                lock.enter_context(hold_lock(path, _UNLOCKED, 0, _BusyError))
                is_held = True
            if not is_held:
                _wait_for(path)
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            lock.close()
            if has_failed or not any(path.parent.glob("*.jsonl")):
                # The end of the run's lock removes the run's folder if no process has written anything else.
                with suppress(OSError, InputError), lock_run(run_path):
                    path.unlink()
                    path.parent.rmdir()


def wait_for_shards(run_path: Path) -> None:
    """Wait until no process makes a shard of a run."""
    for path in sorted((run_path / SHARDS).glob("*.lock")):
        _wait_for(path)


def _wait_for(path: Path) -> None:
    try:
        with hold_lock(path, _UNLOCKED, 0, _BusyError):
            return
    except _BusyError:
        hlog(f"waiting for another process, which has locked {path}; if it is dead, remove this file")
    with hold_lock(path, _UNLOCKED):
        return
