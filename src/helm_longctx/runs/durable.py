"""Files of JSON lines that survive a crash: an added line is on disk at once, and an incomplete last line is ignored.

Threads that write at the same time share one write, because waiting for the disk takes most of the time.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, BinaryIO, Generic, TypeVar

from helm_longctx.errors import InputError

Item = TypeVar("Item")
Lines = TypeVar("Lines", bound="DurableLines")


class GroupWriter(Generic[Item]):
    """Writes what several threads add, in groups: while one group is written, the next one gathers."""

    def __init__(self, write: Callable[[Sequence[Item]], object]):
        self._write = write
        self._gathering: tuple[list[Item], Future[None]] = [], Future()
        self._joining, self._writing = Lock(), Lock()

    def add(self, item: Item) -> None:
        """Write an item with its group. Raises in each thread of the group what `write` raised."""
        with self._joining:
            items, is_written = self._gathering
            items.append(item)
            is_first = len(items) == 1
        # The first thread writes the items of all threads that join the group before the previous group is written.
        if is_first:
            with self._writing:
                with self._joining:
                    self._gathering = [], Future()
                try:
                    self._write(items)
                    is_written.set_result(None)
                except BaseException as error:  # raised again by each thread of the group
                    is_written.set_exception(error)
        is_written.result()


class DurableLines:
    """A file to which threads of one process add JSON values, one a line. A link raises an `InputError`."""

    def __init__(self, path: Path, remedy: str):
        if path.is_symlink():
            raise InputError(f"{path} is a link, which is not followed; remove it, or move the file to its place")
        self.path, self._remedy = path, remedy
        self._file: BinaryIO | None = None
        self._line_number = 0
        self._torn_at: int | None = None
        self._writer = GroupWriter(self._write)

    def __enter__(self: Lines) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def read(self) -> Iterator[Any]:
        """Yield the values in the file, without a cut last line, or raise an `InputError` if another is damaged."""
        if not self.path.exists():
            return
        whole = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self._line_number = number
                if not line.endswith(b"\n"):
                    break
                try:
                    yield self._decode(line)
                except (ValueError, RecursionError) as error:
                    raise self.damage() from error
                whole += len(line)
        self._torn_at = whole

    def damage(self) -> InputError:
        """Return the error for the line that `read` has reached if it is in another format."""
        return InputError(f"{self.path} is damaged in line {self._line_number}; {self._remedy}")

    def append(self, value: Any) -> None:
        """Write a value, in which dataclasses are objects. It is on disk when this method returns."""
        self._writer.add(self._encode(value) + b"\n")

    def _encode(self, value: Any) -> bytes:
        # `dataclasses.asdict` would copy all of it first, which takes several times as long.
        fields = lambda part: {name: field for name, field in vars(part).items() if field is not None}  # noqa: E731
        return json.dumps(value, default=fields).encode()

    def _decode(self, line: bytes) -> Any:
        """Parse a line. Raises a `ValueError` if the line is damaged."""
        return json.loads(line)

    def _write(self, lines: Sequence[bytes]) -> None:
        self._file = self._file or self.path.open("ab")
        if self._torn_at is not None:
            # The torn line is cut off here and not in `read`, because another process that only reads must not do it.
            self._file.truncate(self._torn_at)
            self._torn_at = None
        self._file.write(b"".join(lines))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


class SealedLines(DurableLines):
    """JSON lists that each end with the SHA-256 of the rest; lines of earlier versions without it are read, too."""

    def _encode(self, value: Any) -> bytes:
        content = super()._encode(value)
        return content[:-1] + f', "{hashlib.sha256(content).hexdigest()}"]'.encode()

    def _decode(self, line: bytes) -> Any:
        content, seal = line[:-_SEAL_SIZE] + b"]", _SEAL.fullmatch(line[-_SEAL_SIZE:])
        if not seal:
            return super()._decode(line)
        if hashlib.sha256(content).hexdigest().encode() != seal[1]:
            raise ValueError("the digest is wrong")
        return super()._decode(content)


_SEAL = re.compile(rb', "([0-9a-f]{64})"\]\n')
_SEAL_SIZE = 70
"""Bytes that match `_SEAL`."""
