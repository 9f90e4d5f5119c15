"""Stores the answers of an unfinished run in files that survive a crash, and locks the shards of a run.

Files have JSON lines: an added line is on disk at once, and an incomplete last line is ignored. Threads that write at
the same time share one write, because waiting for the disk takes most of the time. Shards are the parts of a run that
several processes make. Each process holds the lock of its shard.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import dacite

from helm_longctx.errors import InputError
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.helm_log import helm_log
from helm_longctx.locks import hold_lock, lock_run
from helm_longctx.models.results import failure_of, parse_result
from helm_longctx.redaction.abbreviation import digest

_Item = TypeVar("_Item")
_Lines = TypeVar("_Lines", bound="DurableLines")


class GroupWriter(Generic[_Item]):
    """Writes what several threads add, in groups: while one group is written, the next one gathers."""

    def __init__(self, write: Callable[[Sequence[_Item]], object]):
        self._write = write
        self._gathering: tuple[list[_Item], Future[None]] = [], Future()
        self._joining = Lock()
        self._writing = Lock()

    def add(self, item: _Item) -> None:
        """Write an item with its group. Raises in each thread of the group what `write` raised."""
        with self._joining:
            items, is_written = self._gathering
            items.append(item)
            is_first = len(items) == 1
        # The first thread writes the items of all threads that join the group before the previous group is written.
        if is_first:
            try:
                with self._writing:
                    self._close_group(items)
                    self._write(items)
            # Raised again by each thread of the group. Ctrl-C can come while this thread waits for its turn.
            except BaseException as error:
                self._close_group(items)
                is_written.set_exception(error)
            else:
                is_written.set_result(None)
        is_written.result()

    def _close_group(self, items: Sequence[_Item]) -> None:
        """Let no further item join a group."""
        with self._joining:
            if self._gathering[0] is items:
                self._gathering = [], Future()


class DurableLines:
    """A file to which threads of one process add JSON values, one a line. A link raises an `InputError`."""

    def __init__(self, path: Path, remedy: str):
        if path.is_symlink():
            raise InputError(
                f"{path} is a link, which is not followed; remove it, or move the file to its place"
            )
        self.path = path
        self._remedy = remedy
        self._file: FileIO | None = None
        self._line_number = 0
        self._writer = GroupWriter(self._write)

    def __enter__(self: _Lines) -> _Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read(self) -> Iterator[Any]:
        """Yield the values in the file, without a cut last line, or raise an `InputError` if another is damaged."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self._line_number = number
                if not line.endswith(b"\n"):
                    break
                try:
                    yield self._decode(line)
                except (ValueError, RecursionError) as error:
                    raise self.damage() from error

    def damage(self) -> InputError:
        """Return the error for the line that `read` has reached if it is in another format."""
        return InputError(
            f"{self.path} is damaged in line {self._line_number}; {self._remedy}"
        )

    def append(self, value: Any) -> None:
        """Write a value, in which dataclasses are objects. It is on disk when this method returns."""
        self._writer.add(self._encode(value) + b"\n")

    def _encode(self, value: Any) -> bytes:
        # `dataclasses.asdict` would copy all of it first, which takes several times as long.
        def fields(part: Any) -> dict[str, Any]:
            return {
                name: field for name, field in vars(part).items() if field is not None
            }

        return json.dumps(value, default=fields).encode()

    def _decode(self, line: bytes) -> Any:
        """Parse a line. Raises a `ValueError` if the line is damaged."""
        return json.loads(line)

    def _write(self, lines: Sequence[bytes]) -> None:
        if self._file is not None and self._file.closed:
            # An answer came after the run was interrupted. A run that is complete has no such file any more.
            if not self.path.exists():
                return
            self._file = None
        if self._file is None:
            # There is no buffer: what a full disk did not take must not be written later, behind other lines.
            self._file = self.path.open("a+b", buffering=0)
        # The torn line is cut off here and not in `read`, because another process that only reads must not do it.
        _cut_torn_line(self._file)
        _append(self._file, b"".join(lines))
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


_BLOCK = 1 << 16
"""Bytes in which the end of a file is searched for its last whole line."""


def _cut_torn_line(file: FileIO) -> None:
    """Remove a part of a line at the end of a file, which a process left that was killed or whose disk was full."""
    end = file.seek(0, os.SEEK_END)
    if end == 0 or os.pread(file.fileno(), 1, end - 1) == b"\n":
        return
    whole = 0
    while end and not whole:
        start = max(0, end - _BLOCK)
        block = os.pread(file.fileno(), end - start, start)
        newline = block.rfind(b"\n")
        if newline >= 0:
            whole = start + newline + 1
        end = start
    file.truncate(whole)


def _append(file: FileIO, lines: bytes) -> None:
    """Add lines to the end of a file. If the disk becomes full, those that fit remain, and no part of another one."""
    start = file.seek(0, os.SEEK_END)
    written = 0
    try:
        # A call of the system writes only a part if the disk becomes full. The next call fails.
        while written < len(lines):
            written += file.write(memoryview(lines)[written:])
    except BaseException:
        # Else the next line would follow a part of a line, and both would be damaged.
        whole = lines.rfind(b"\n", 0, written) + 1
        file.truncate(start + whole)
        raise


class SealedLines(DurableLines):
    """JSON lists that each end with the SHA-256 of the rest."""

    def _encode(self, value: Any) -> bytes:
        content = super()._encode(value)
        return content[:-1] + f', "{hashlib.sha256(content).hexdigest()}"]'.encode()

    def _decode(self, line: bytes) -> Any:
        content = line[:-_SEAL_SIZE] + b"]"
        seal = _SEAL.fullmatch(line[-_SEAL_SIZE:])
        if not seal:
            raise ValueError("the digest is missing")
        if hashlib.sha256(content).hexdigest().encode() != seal[1]:
            raise ValueError("the digest is wrong")
        return super()._decode(content)


class KeptValues(SealedLines):
    """Values that were paid for, by a digest of what they were paid for. Each is on disk before anything else happens.

    Raises:
        InputError: the file is damaged.
    """

    def __init__(self, path: Path, remedy: str):
        super().__init__(path, remedy)
        self._values: dict[str, Any] = dict(self.read())

    def get(self, name: str) -> Any:
        """Return what is kept under a name, or None."""
        return self._values.get(name)

    def values(self) -> list[Any]:
        """Return all values, in the order in which they were added first."""
        return list(self._values.values())

    def add(self, name: str, value: Any) -> None:
        """Keep a value that JSON can hold. It is on disk when this method returns."""
        self.append([name, value])
        self._values[name] = value


_SEAL = re.compile(rb', "([0-9a-f]{64})"\]\n')
_SEAL_SIZE = 70
"""Bytes that match `_SEAL`."""


NAME = "answers.jsonl"
_Value = TypeVar("_Value")

SHARDS = "shards"
"""Folder in a run's folder for the files of shards: locks, and a file of answers for each process."""


class Journal(SealedLines):
    """A file with one line for each answer, under the digest of its request and with a digest of the line.

    A last line that a crash cut off is dropped; another one that was changed raises an `InputError`. The answers in the
    run's other files of this kind are found, too. `advice` says how a user continues the run.

    Args:
        run_path: the run's folder. The file stays there until `finish`. As long as it exists, the run is unfinished.
        server: identifies the server, so that its answers are not used for another one (see `server_digest`).
        process: name of this process if it works on a shard, so that it writes to its own file.
    """

    advice = "run the same command again"

    def __init__(
        self,
        run_path: Path,
        server: str = "",
        process: str | None = None,
    ):
        path = run_path / SHARDS / f"{process}.jsonl" if process else run_path / NAME
        super().__init__(path, _REMEDY)
        path.touch()
        self._run_path = run_path
        self._server = server
        self._answers: dict[str, RequestResult | None] = {}
        for other in answer_files(run_path):
            if other != path:
                self._answers |= read_answers(other)
        self._answers.update(_read(self))

    def __len__(self) -> int:
        return len(self._answers)

    def summary(self) -> str:
        """Say how many answers are kept and how to continue the run."""
        if not self:
            return f"there are no answers yet; {self.advice} to continue"
        return f"{len(self)} answers are kept in {self.path}; {self.advice} to continue"

    def name(self, request: Request, prompt_digest: str) -> str:
        """Return the digest of a request and its server."""
        return request_name(request, prompt_digest, self._server)

    def get(self, name: str) -> RequestResult | None:
        """Return the answer to a request, if there is one and the stored result is no failure."""
        result = self._answers.get(name)
        return result if result and failure_of(result) is None else None

    def add(self, name: str, result: RequestResult) -> None:
        """Write an answer. It is on disk when this method returns."""
        self.append([name, result])
        # Not before: what is not on disk is not kept, and an equal request must not get it.
        self._answers[name] = result

    def close(self) -> None:
        """Close the file, and remove it if it is empty, because then no requests of the run were sent."""
        super().close()
        if self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()

    def finish(self) -> None:
        """Remove the journal and the journals of shards, because the run's other files hold every answer now."""
        self.close()
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self._run_path / SHARDS, ignore_errors=True)


def request_name(request: Request, prompt_digest: str, server: str = "") -> str:
    """Return the digest of a request."""
    content = {**vars(request), "prompt": prompt_digest}
    if request.messages:
        content["messages"] = []  # `prompt_digest` covers them
    sent = json.dumps(content, sort_keys=True, default=vars)
    return digest(f"{server}\0{sent}")


def answer_files(run_path: Path) -> list[Path]:
    """Return the files with answers of an unfinished run. A complete run has none."""
    return [*run_path.glob(NAME), *sorted((run_path / SHARDS).glob("*.jsonl"))]


def read_answers(path: Path) -> dict[str, RequestResult | None]:
    """Read the answers in a journal by request, None as in `Journal.get`, or raise an `InputError`."""
    with SealedLines(path, _REMEDY) as lines:
        return dict(_read(lines))


def _read(lines: SealedLines) -> Iterator[tuple[str, RequestResult | None]]:
    for line in lines.read():
        if not (
            isinstance(line, list) and [type(part) for part in line] == [str, dict]
        ):
            raise lines.damage()
        try:
            yield line[0], parse_result(line[1])
        except (dacite.DaciteError, ValueError, TypeError, KeyError):
            # Another version has written it.
            yield line[0], None


def parse_object(kind: type[_Value], content: Mapping[str, Any]) -> _Value:
    """Make one of HELM's objects from plain data. Raises a `DaciteError` if a field is missing."""
    # HELM's clients return whole numbers where floats are declared.
    return dacite.from_dict(kind, content, dacite.Config(check_types=False))


_REMEDY = "remove this line, and its answer is requested again"


_LOCK_WAIT = 10.0
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
            raise InputError(
                f"shard {text!r} is invalid; give 1/N to N/N, for example 2/4"
            )
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
            with lock_run(run_path, _LOCK_WAIT), suppress(_BusyError):
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
        helm_log.info(
            f"waiting for another process, which has locked {path}; if it is dead, remove this file"
        )
    with hold_lock(path, _UNLOCKED):
        return
