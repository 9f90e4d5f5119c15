"""JSON-lines files, one row in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from helm_longctx.errors import InputError

Row = Mapping[str, Any]


class JsonLines:
    """Rows of a JSON-lines file by number. One pass finds where rows start; only rows that are asked for are parsed.

    Args:
        path: the file, UTF-8. Lines end at `\\n` alone, as in the official readers; blank lines are no rows.
        types: columns that every row must have, and their Python types.

    Raises:
        InputError: there is no such file; later, on reading: a row is not JSON, or lacks a column.
    """

    def __init__(self, path: Path, types: Mapping[str, type | tuple[type, ...]]):
        self.path, self.types = path, types
        try:
            with path.open("rb") as file:
                self._starts = list(_row_starts(file))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        if not self._starts:
            raise InputError(f"{path}: the file has no rows")

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Row]:
        return self.rows(range(len(self)))

    def rows(self, numbers: range | list[int]) -> Iterator[Row]:
        """Rows in the order of `numbers`."""
        with self.path.open("rb") as file:
            for number in numbers:
                line, start = self._starts[number]
                file.seek(start)
                yield self._parse(file.readline(), line)

    def _parse(self, text: bytes, line: int) -> Row:
        try:
            row = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{self.path}:{line}: not a JSON object: {error.msg}") from error
        if not isinstance(row, dict):
            raise InputError(f"{self.path}:{line}: not a JSON object but {type(row).__name__}")
        for column, kind in self.types.items():
            if not isinstance(row.get(column), kind):
                names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
                found = type(row[column]).__name__ if column in row else "nothing"
                raise InputError(f"{self.path}:{line}: column {column!r} must be {names}, found {found}")
        return row


def _row_starts(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """(line number from 1, byte offset) of every line that is not blank."""
    start = 0
    for line, text in enumerate(file, 1):
        if not text.isspace():
            yield line, start
        start += len(text)
