"""JSON files of many rows, one row in memory at a time: JSON lines, or one array of objects."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from helm_longctx.errors import InputError

Row = Mapping[str, Any]
Types = Mapping[str, type | tuple[type, ...]]

_STRING_OR_BRACE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}]', re.DOTALL)
"""A string without its end goes to the end of the file: looking for one at every escaped quote would take hours."""

_MARGIN = 4096
"""Bytes at both ends of a file that may be blank."""


class FileRow(dict[str, Any]):
    """A row that knows its place, so that the error of a loader can name it.

    Args:
        columns: the row's values by column.
        path: the file.
        number: its number in the file, from 1; of JSON lines the line's.
    """

    def __init__(self, columns: Mapping[str, Any], path: Path, number: int):
        super().__init__(columns)
        self.path, self.number = path, number

    def __str__(self) -> str:
        return f"row {self.number} of {self.path}"


def find_row(traceback: TracebackType | None) -> FileRow | None:
    """The row that failing code was working on: the only one among the variables of its innermost function with a row.

    None if no function held a row, or that function held several, so that it may have been any of them.
    """
    found: dict[int, FileRow] = {}
    while traceback:
        rows = {id(value): value for value in traceback.tb_frame.f_locals.values() if isinstance(value, FileRow)}
        found, traceback = rows or found, traceback.tb_next
    return next(iter(found.values())) if len(found) == 1 else None


class JsonRows:
    """Rows of a file by number. One pass finds where rows stand; only rows that are asked for are parsed.

    Args:
        path: the file, UTF-8.
        types: columns that every row must have, and their Python types.

    Raises:
        InputError: there is no such file; later, on reading: a row is not JSON, or lacks a column.
    """

    unit: str
    """What errors call a place in the file."""

    def __init__(self, path: Path, types: Types):
        self.path, self.types = path, types
        try:
            with path.open("rb") as file:
                self._places = list(self.places(file))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        if not self._places:
            raise InputError(f"{path}: the file has no rows")

    @staticmethod
    def places(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """(number from 1 for messages, first byte, number of bytes) of every row."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[FileRow]:
        return self.rows(range(len(self)))

    def rows(self, numbers: Iterable[int]) -> Iterator[FileRow]:
        """Rows in the order of `numbers`."""
        with self.path.open("rb") as file:
            for number in numbers:
                place, start, size = self._places[number]
                file.seek(start)
                yield self._parse(file.read(size), place)

    def _parse(self, text: bytes, place: int) -> FileRow:
        where = f"{self.path}{self.unit}{place}"
        try:
            row = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{where}: not a JSON object: {error.msg}") from error
        if not isinstance(row, dict):
            raise InputError(f"{where}: not a JSON object but {type(row).__name__}")
        for column, kind in self.types.items():
            if not isinstance(row.get(column), kind):
                names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
                found = type(row[column]).__name__ if column in row else "nothing"
                raise InputError(f"{where}: column {column!r} must be {names}, found {found}")
        return FileRow(row, self.path, place)


class JsonLines(JsonRows):
    """Lines end at `\\n` alone, as in the official readers; blank lines are no rows."""

    unit = ":"

    @staticmethod
    def places(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Every line that is not blank."""
        start = 0
        for line, text in enumerate(file, 1):
            if not text.isspace():
                yield line, start, len(text)
            start += len(text)


class JsonArray(JsonRows):
    """One array of objects, which may be larger than memory."""

    unit = ": item "

    @staticmethod
    def places(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Every object that stands in no other."""
        if not file.read(1):
            return
        number = depth = start = 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if not data[:_MARGIN].strip():
                return
            if not data[:_MARGIN].lstrip().startswith(b"["):
                raise InputError(f"{file.name}: not a JSON array: it does not begin with [")
            for match in _STRING_OR_BRACE.finditer(data):
                if match[0] == b"{":
                    start = start if depth else match.start()
                    depth += 1
                elif match[0] == b"}":
                    depth -= 1
                    if depth == 0:
                        number += 1
                        yield number, start, match.end() - start
            if depth or not data[-_MARGIN:].rstrip().endswith(b"]"):
                raise InputError(f"{file.name}: not a whole JSON array: the file is cut or damaged")
