"""Files of JSON lines that survive a crash: a line is on disk when it is added, and a torn last line does not count."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, TypeVar

from helm_longctx.errors import InputError

Lines = TypeVar("Lines", bound="DurableLines")


class DurableLines:
    """A file to which JSON values are added, one a line. Several threads may add values, but only one process.

    Args:
        path: the file; it is created if necessary.
        remedy: what to do if the file is damaged; it ends the error.

    Attributes:
        path: the argument.
    """

    def __init__(self, path: Path, remedy: str):
        self.path, self._remedy = path, remedy
        self._file = path.open("a+b")
        self._torn_at: int | None = None
        self._lock = Lock()

    def __enter__(self: Lines) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def read(self) -> Iterator[Any]:
        """Yield the values in the file, without a last line that a crash cut off.

        Raises:
            InputError: the file is damaged before its last line.
        """
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                yield json.loads(line)
            except ValueError as error:
                raise self.damage() from error
            whole += len(line)
        self._torn_at = whole

    def damage(self) -> InputError:
        """Return the error for a file that has a line in another format."""
        return InputError(f"{self.path} is damaged; {self._remedy}")

    def append(self, value: Any) -> None:
        """Write a value. It is on disk when this method returns."""
        line = json.dumps(value).encode() + b"\n"
        with self._lock:
            if self._torn_at is not None:
                # Not when reading: another process that only reads must not cut off a line that is being written.
                self._file.truncate(self._torn_at)
                self._torn_at = None
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
