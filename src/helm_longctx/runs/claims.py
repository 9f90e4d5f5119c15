"""Claims of shards. A claim says which process works on a part of a run, on a disk that several machines can share.

A claim is a file that only one process can create, so no locks are needed. Its owner rewrites it every few seconds. If
the owner is killed, the file becomes old, and another process can create the claim's next generation.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType

from helm.common.hierarchical_logger import hlog

from helm_longctx.errors import InputError
from helm_longctx.locks import lock_run
from helm_longctx.runs.journal import SHARDS

BEAT = 10.0
"""Seconds between two writes of a claim."""

STALE = 60.0
"""Seconds without a write after which a claim has no owner. This is longer than NFS clients cache files."""

LOCK_WAIT = 10.0
"""Seconds to wait for the lock of a run's folder, which other shards hold only while they claim."""


@dataclass(frozen=True, order=True)
class Shard:
    """A part of a run.

    Args:
        number: the part's number, from 1 to `total`.
        total: the number of parts of the run.
    """

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read a shard such as `2/4`.

        Raises:
            InputError: the text has another format, or the number is not in the range.
        """
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.number <= shard.total:
            raise InputError(f"shard {text!r} is not allowed; allowed: 1/N to N/N, for example 2/4")
        return shard


@dataclass(frozen=True)
class ClaimState:
    """The progress of a shard.

    Args:
        owner: the process that works on it.
        requests: number of its requests; None while they are being made.
        answered: number of requests with an answer.
        is_done: whether all requests were sent. Those without an answer have failed.
    """

    owner: str
    requests: int | None = None
    answered: int = 0
    is_done: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all requests have an answer."""
        return self.is_done and self.answered == self.requests


def process_name() -> str:
    """Return a name for this process that no other process has."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


class Claim:
    """The claim of this process on a shard. A thread renews it until the block ends.

    If the block fails, the claim is released at once, so that another process can take it.

    Args:
        path: the claim's file, which exists.
        state: the content of the file.
        next_path: the file of the next generation. If it exists, another process has taken over the shard.
    """

    def __init__(self, path: Path, state: ClaimState, next_path: Path):
        self._path, self._state, self._next_path = path, state, next_path
        self._ended = threading.Event()
        self._count: Callable[[], int] = lambda: 0
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Claim:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if kind is not None:
            self._path.unlink(missing_ok=True)
            # The end of the lock removes the run's folder if no process has written anything else.
            with suppress(OSError, InputError), lock_run(self._path.parent.parent):
                self._path.parent.rmdir()
        else:
            self._state = replace(self._state, is_done=True)
            self._write()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken over the shard because this one seemed to be dead."""
        return self._next_path.exists()

    def follow(self, requests: int, count: Callable[[], int], stop: Callable[[], None]) -> None:
        """Start to report the progress of the shard in the claim.

        Args:
            requests: number of the shard's requests.
            count: returns the number of requests with an answer.
            stop: is called when another process has taken over the shard.
        """
        self._state, self._count, self._stop = replace(self._state, requests=requests), count, stop

    def _renew(self) -> None:
        while not self._ended.wait(BEAT):
            if self.is_lost:
                self._stop()
                return
            with suppress(OSError):  # the disk may be unavailable for a moment
                self._write()

    def _write(self) -> None:
        self._state = replace(self._state, answered=self._count())
        _write(self._path, self._state)


def take_claim(run_path: Path, shard: Shard, owner: str, again: bool = True) -> Claim | None:
    """Claim a shard; return None if its owner is still working or all its requests have answers.

    An owner gets its own claim again at once, so that a process that replaces a dead one need not wait.

    Args:
        owner: name of the process, or of the task that it was started for.
        again: whether to claim also a shard whose requests were all sent and of which some have failed.

    Raises:
        InputError: another process makes the whole run.
    """
    # The lock is needed because a process that makes the whole run looks for claims only once.
    with lock_run(run_path, LOCK_WAIT):
        path, state = next(((path, state) for each, path, state in _claims(run_path) if each == shard), (None, None))
        if path and state and not _is_free(path, state, owner, again):
            return None
        generation = int(path.suffix[1:]) + 1 if path else 1
        new_path, next_path = (_path(run_path, shard, number) for number in (generation, generation + 1))
        new_path.parent.mkdir(exist_ok=True)
        try:
            with new_path.open("x") as file:
                json.dump(asdict(ClaimState(owner)), file)
        except FileExistsError:  # on a disk without locks another process was faster
            return None
    return Claim(new_path, ClaimState(owner), next_path)


def read_claims(run_path: Path) -> dict[Shard, ClaimState]:
    """Return the newest claim of each shard."""
    return {shard: state for shard, _, state in _claims(run_path)}


def wait_for_shards(run_path: Path, shard: Shard | None = None) -> None:
    """Wait until no process works on a shard of a run, or on any shard if none is given."""
    told = ""
    while live := [
        f"shard {each} ({state.owner})"
        for each, path, state in _claims(run_path)
        if shard in (None, each) and _is_live(path, state)
    ]:
        if told != (told := ", ".join(live)):
            hlog(f"{run_path.name}: waiting for {told}; a killed process is noticed after {STALE:g} seconds")
        time.sleep(min(BEAT, STALE) / 4)


def _claims(run_path: Path) -> Iterator[tuple[Shard, Path, ClaimState]]:
    newest: dict[Shard, int] = {}
    for path in (run_path / SHARDS).glob("*"):
        if match := _NAME.fullmatch(path.name):
            number, total, generation = map(int, match.groups())
            shard = Shard(number, total)
            newest[shard] = max(generation, newest.get(shard, 0))
    for shard in sorted(newest):
        path = _path(run_path, shard, newest[shard])
        yield shard, path, _read(path)


def _read(path: Path) -> ClaimState:
    try:
        return ClaimState(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):  # its owner is creating or removing it
        return ClaimState("another process")


def _write(path: Path, state: ClaimState) -> None:
    # Other processes can read the claim at any moment and must not find half of it. `_NAME` does not match the
    # temporary file.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    temporary.write_text(json.dumps(asdict(state)))
    temporary.replace(path)


# The shard's number, the number of shards, and the claim's generation: `2-of-4.1`.
_NAME = re.compile(r"(\d+)-of-(\d+)\.(\d+)")


def _path(run_path: Path, shard: Shard, generation: int) -> Path:
    return run_path / SHARDS / f"{shard.number}-of-{shard.total}.{generation}"


def _is_free(path: Path, state: ClaimState, owner: str, again: bool) -> bool:
    if state.is_done:
        return again and not state.is_complete
    return state.owner == owner or not _is_live(path, state)


def _is_live(path: Path, state: ClaimState) -> bool:
    """Whether a claim was written recently, by the clock of the disk, because the clocks of machines can differ."""
    clock = path.with_name(f".clock-{uuid.uuid4().hex}")
    try:
        clock.touch()
        return not state.is_done and clock.stat().st_mtime - path.stat().st_mtime < STALE
    except FileNotFoundError:
        return False
    finally:
        clock.unlink(missing_ok=True)
