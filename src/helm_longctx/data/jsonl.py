"""Reads large JSON files (JSON lines, or one array of objects) one row at a time, or the first row alone."""

import json
import mmap
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from helm_longctx.errors import InputError, ShapeError, find_similar, shorten

Row = Mapping[str, Any]
Types = Mapping[str, type | tuple[type, ...]]

NOT_UTF_8 = "the text is not UTF-8; save the file in UTF-8"

_STRING_OR_BRACE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}]', re.DOTALL)
"""The closing quote is optional so that an unterminated string matches to the end of the file. Otherwise the search
would start again at every escaped quote in it, in time that is quadratic in the size of the file."""

JSON = (".json", ".jsonl")
"""The ends of the names of files whose first row can be read."""

MOST = 64 << 20
"""Most bytes of a file that are read for its first row (it can hold millions of tokens), or of a packed archive."""

_MARGIN = 4096
"""Number of bytes at the start and at the end of a file in which the bracket of an array must be, among blanks."""

_BUFFER = 1 << 18
"""Number of bytes that are read at once to find the rows. Python's default of 8 kB is slower with long rows."""

_LARGE = 2.0**63
"""orjson returns integers from -2**63 to 2**64 - 1 as they are, and others as floats."""

_PARTS = frozenset((float, list, dict))
"""Kinds of values that are or contain floats."""


class FileRow(dict[str, Any]):
    """A row that knows its file and its number (from 1; of a line), so that the error of a loader can name it."""

    def __init__(
        self,
        columns: Mapping[str, Any],
        path: Path,
        number: int,
    ):
        super().__init__(columns)
        self.path = path
        self.number = number

    def __str__(self) -> str:
        return f"row {self.number} of {self.path}"


def find_row(traceback: TracebackType | None) -> FileRow | None:
    """Return the row on which code failed, if the innermost function with rows has only one."""
    innermost: dict[int, FileRow] = {}
    while traceback:
        # Rows are told apart by identity: one row can have several names, and different rows can have equal content.
        rows = {}
        for value in traceback.tb_frame.f_locals.values():
            if isinstance(value, FileRow):
                rows[id(value)] = value
        innermost = rows or innermost
        traceback = traceback.tb_next
    if len(innermost) != 1:
        return None
    return next(iter(innermost.values()))


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that is one JSON object, as `parse_json` parses it, or raise an `InputError`."""
    try:
        return _parse_object(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _parse_object(text: bytes, where: str) -> dict[str, Any]:
    """Parse a JSON object. Errors start with `where`."""
    try:
        content = parse_json(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: {NOT_UTF_8}") from error
    except (ValueError, RecursionError) as error:
        # The rows of a file are parsed one by one, so a line number of the parser would be wrong.
        what = str(error)
        if isinstance(error, json.JSONDecodeError):
            what = f"{error.msg} at character {error.pos + 1}"
        raise InputError(f"{where}: not a JSON object: {what}") from error
    if not isinstance(content, dict):
        raise InputError(f"{where}: not a JSON object but {type(content).__name__}")
    return content


def find_nested(content: object, *names: str) -> Any:
    """Return the value under names in objects within each other, or None where one is missing or no object."""
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def parse_json(text: bytes) -> Any:
    """Parse JSON as Python does, with NaN and integers of any size. Raises a `ValueError` or `RecursionError`."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text.decode())
    # orjson is several times faster than Python's parser, but turns integers of more than 64 bits into floats.
    if _has_large_float([value]):
        return json.loads(text)
    return value


def _has_large_float(values: Iterable[Any]) -> bool:
    """Whether values contain a float that can stand for an integer of more than 64 bits."""
    for value in values:
        # This one look-up skips texts and integers: most values are of these.
        if type(value) in _PARTS:
            if isinstance(value, float):
                if abs(value) >= _LARGE:
                    return True
            elif _has_large_float(value.values() if isinstance(value, dict) else value):
                return True
    return False


class _JsonRows:
    """The rows of a file by number, located in one pass, and parsed on request; a wrong one raises an `InputError`."""

    unit: str
    """Text between file name and row number in errors."""

    def __init__(self, path: Path, types: Types):
        self.path = path
        self.types = types
        try:
            with path.open("rb", buffering=_BUFFER) as file:
                self._locations = list(self.locate_rows(file))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        if not self._locations:
            raise InputError(f"{path}: the file has no rows")

    @staticmethod
    def locate_rows(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Yield for each row its number in errors (from 1), the position of its first byte, and its size in bytes."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._locations)

    def __iter__(self) -> Iterator[FileRow]:
        return self.rows(range(len(self)))

    def rows(self, numbers: Iterable[int]) -> Iterator[FileRow]:
        """Yield the rows with these numbers (from 0), in the order of `numbers`."""
        with self.path.open("rb") as file:
            for number in numbers:
                index, start, size = self._locations[number]
                file.seek(start)
                where = f"{self.path}{self.unit}{index}"
                row = _parse_object(file.read(size), where)
                for column, types in self.types.items():
                    if not isinstance(row.get(column), types):
                        raise self._explain_column(row, column, where)
                yield FileRow(row, self.path, index)

    def _explain_column(
        self,
        row: Mapping[str, Any],
        column: str,
        where: str,
    ) -> ShapeError:
        """Return the error for a row whose column is missing or has another type."""
        types = self.types[column]
        alternatives = types if isinstance(types, tuple) else (types,)
        names = " or ".join(alternative.__name__ for alternative in alternatives)
        given = "nothing"
        if column in row:
            given = type(row[column]).__name__
        elif row:
            similar = find_similar(column, row.keys() - self.types.keys())
            if similar:
                given += f"; the row has {similar[0]!r} instead"
            given += f"; its columns are {', '.join(shorten(name, 30) for name in row)}"
        return ShapeError(f"{where}: column {column!r} must be {names}, found {given}")


class JsonLines(_JsonRows):
    """A file with one JSON object on each line. Only `\\n` ends a line, as in the official readers."""

    unit = ":"

    @staticmethod
    def locate_rows(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Yield the location of every line that is not blank."""
        start = 0
        for line, text in enumerate(file, 1):
            if not text.isspace():
                yield line, start, len(text)
            start += len(text)


class JsonArray(_JsonRows):
    """A file that is one array of objects. It may be larger than memory."""

    unit = ": item "

    @staticmethod
    def locate_rows(file: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Yield the location of every object that is not nested in another."""
        # An empty file cannot be mapped into memory.
        if not file.read(1):
            return
        number = depth = start = 0
        # Braces outside of strings tell where an object begins and ends, so no object is parsed to find its end.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if not data[:_MARGIN].strip():
                return
            if not data[:_MARGIN].lstrip().startswith(b"["):
                raise InputError(
                    f"{file.name}: not a JSON array: it does not begin with ["
                )
            for match in _STRING_OR_BRACE.finditer(data):
                if match[0] == b"{":
                    # Only the outermost brace starts a row; braces inside it belong to nested objects.
                    start = start if depth else match.start()
                    depth += 1
                elif match[0] == b"}":
                    depth -= 1
                    if depth == 0:
                        number += 1
                        yield number, start, match.end() - start
            if depth or not data[-_MARGIN:].rstrip().endswith(b"]"):
                raise InputError(
                    f"{file.name}: not a complete JSON array: the file is truncated or damaged"
                )


def first_json_content(file: BinaryIO) -> bytes:
    """Return a file of JSON lines, or of an array of objects, with the first object alone."""
    row, is_array = read_first_row(file)
    content = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    if is_array:
        return b"[" + content + b"]"
    return content


def read_first_row(file: BinaryIO) -> tuple[Mapping[str, Any], bool]:
    """Return the first object of JSON lines, or of an array of objects, and whether it is an array.

    Raises a `ShapeError` if the file does not begin with an object.
    """
    blanks = 0
    text = b""
    while not text and blanks < _MARGIN and (more := file.read(1)):
        text = more.lstrip()
        blanks += 1
    is_array = text == b"["
    if not is_array:
        text += file.readline(MOST)
        row = _parse_row(text)
        if row is not None:
            return row, is_array
    # The object has several lines. Each time as much again is read, because what was read is searched again.
    text = b"" if is_array else text
    while len(text) < MOST and (more := file.read(max(1 << 16, len(text)))):
        text += more
        row = _parse_row(_first_object(text))
        if row is not None:
            return row, is_array
    raise ShapeError("it does not begin with a JSON object")


def _parse_row(text: bytes) -> Mapping[str, Any] | None:
    """Return the object that a text is; None if it is none."""
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def _first_object(text: bytes) -> bytes:
    """Return the text up to the brace that closes the first one; all of it if that is not there."""
    depth = 0
    for match in _STRING_OR_BRACE.finditer(text):
        depth += (match[0] == b"{") - (match[0] == b"}")
        if match[0] == b"}" and not depth:
            return text[: match.end()]
    return text
