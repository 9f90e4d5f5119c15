"""Reads, writes and streams the files that HELM's runner writes for a run, and recognizes damaged files."""

import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from json.encoder import encode_basestring_ascii
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import orjson

from helm_longctx.errors import DamagedRunError, InputError, shorten
from helm_longctx.tasks.sample import Sample

RUN_SPEC = "run_spec.json"
SCENARIO = "scenario.json"
STATES = "scenario_state.json"
STATS = "stats.json"
INSTANCE_STATS = "per_instance_stats.json"
_LOOKS = "looks.json"
DATA = "data.json"
"""The files that the questions were read from, with their digests."""
MODEL = "python_model.json"
"""What identifies a model that ran in the process of the run."""

FILES = (RUN_SPEC, SCENARIO, STATES, STATS, INSTANCE_STATS)
"""All files, in the order in which HELM writes them. A run is complete if it has the last one."""

State = dict[str, Any]
"""A request state as plain data."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_TAIL = 16
"""Bytes read at the end of a file to see whether the file is complete."""

_PIECE = 1 << 16
"""Bytes of a file that are read at once at least."""

# HELM indents its JSON by two spaces and escapes newlines in texts, so these lines can only be outer brackets.
_LIST = b'  "request_states": [\n'
_EMPTY_LIST = b'  "request_states": []'
_LIST_END = b"  ]"
_STATE = b"    {\n"
_STATE_END = b"    }"
_ROWS = b"[\n"
_ROWS_END = b"]"
_ROW = b"  {\n"
_ROW_END = b"  }"


FORMAT_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""Errors of code that reads a file in another form."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise a `DamagedRunError` for any error in the block."""
    try:
        yield
    except DamagedRunError:
        raise  # the error of a file that was read within the block
    except FORMAT_ERRORS as error:
        raise DamagedRunError(
            f"{path} cannot be read ({type(error).__name__}); repeat that run"
        ) from error


def read_json(path: Path) -> Any:
    """Read a small JSON file. Raises an `InputError` if the file is missing or damaged."""
    with reading(path):
        return parse(path.read_bytes())


def read_model(run: Path) -> dict[str, Any]:
    """Return what identifies a run's model (empty if it ran elsewhere), or raise an `InputError`."""
    path = run / MODEL
    return dict(read_json(path)) if path.is_file() else {}


def write_model(run: Path, identity: Mapping[str, Any]) -> None:
    """Write what identifies the model of a run."""
    run.mkdir(parents=True, exist_ok=True)
    content = orjson.dumps(identity, option=orjson.OPT_INDENT_2, default=str)
    # A file that is cut off by an interruption could not be compared when the run goes on.
    replace_file(run / MODEL, content)


def read_data(run: Path) -> dict[str, str]:
    """Return the SHA-256 of the files that a run's questions were read from, by path. Older runs have none.

    Raises an `InputError` if the file is damaged.
    """
    path = run / DATA
    if not path.is_file():
        return {}
    with reading(path):
        return {name: str(about["sha256"]) for name, about in read_json(path).items()}


def write_data(run: Path, described: Mapping[str, Any]) -> None:
    """Write which files a run's questions were read from. A run without files gets none."""
    if described:
        run.mkdir(parents=True, exist_ok=True)
        replace_file(run / DATA, orjson.dumps(described, option=orjson.OPT_INDENT_2))


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a JSON list of objects, one at a time in HELM's layout, or raise an `InputError`."""
    with reading(path), path.open("rb") as file:
        lines = _Lines(file)
        # An empty list is on one line, and other programs can write another layout.
        if lines.read() != _ROWS:
            yield from read_json(path)
            return
        while line := lines.read():
            if line == _ROW:
                yield _parse_object(lines, _ROW_END)[0]
            elif line.rstrip() == _ROWS_END:
                return
        raise ValueError("the end of the list is missing")


_LONGEST_RUN_NAME = 240
"""Bytes of the longest run name. File systems allow 255 for a folder, and names of lock files are a few bytes longer."""


def check_run_name(name: str) -> None:
    """Raise an `InputError` if the name of a run is too long for its folder."""
    size = len(name.encode())
    if size > _LONGEST_RUN_NAME:
        raise InputError(
            f"the name of the run has {size} bytes, and at most {_LONGEST_RUN_NAME} are allowed because its folder"
            f" has this name: {shorten(name)}; use a shorter name of the model, or fewer arguments"
        )


def read_run_spec(run: Path) -> dict[str, Any]:
    """Read the run spec of a run's folder. Raises an `InputError` if it is missing or damaged."""
    path = run / RUN_SPEC
    spec = read_json(path)
    with reading(path):
        if not isinstance(spec, dict):
            raise TypeError("a run spec is an object")
    return spec


def find_runs(suite: Path) -> list[Path]:
    """Return the folders of a suite that have a run spec, sorted."""
    return [path.parent for path in sorted(suite.glob(f"*/{RUN_SPEC}"))]


def read_undamaged(
    runs: Iterable[Path], read: Callable[[Path], _T]
) -> Iterator[tuple[Path, _T]]:
    """Yield each run with what `read` returns for it. Runs for which it raises an `InputError` are left out.

    At the end there is a warning for each run that was left out.

    Raises:
        InputError: every run is damaged. It is the error of the first one.
    """
    errors: list[InputError] = []
    has_readable_run = False
    for run in runs:
        try:
            content = read(run)
        except InputError as error:
            errors.append(error)
            continue
        has_readable_run = True
        yield run, content
    if errors and not has_readable_run:
        raise errors[0]
    for damage in errors:
        _log.warning("left out: %s", damage)


def read_run_specs(suite: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders and run specs of a suite's runs, sorted. Damaged ones are left out with a warning.

    Raises an `InputError` if all of them are damaged.
    """
    return read_undamaged(find_runs(suite), read_run_spec)


def read_states(path: Path) -> Iterator[State]:
    """Read the states of a `scenario_state.json`, one at a time, or raise an `InputError`."""
    return (part for part in _split(path) if isinstance(part, dict))


def rewrite_states(
    source: Path, target: Path, change: Callable[[State], State]
) -> None:
    """Copy a `scenario_state.json` with each state changed, or raise an `InputError`."""
    with target.open("wb") as copy:
        for part in _split(source):
            copy.write(
                json.dumps(change(part)).encode("ascii")
                if isinstance(part, dict)
                else part
            )


def find_sample(instance: Mapping[str, Any]) -> Sample | None:
    """Return the sample in an instance's `extra_data`. An instance of another package's scenario has none."""
    extra = instance.get("extra_data")
    return Sample.from_json(extra) if Sample.is_in(extra) else None


def repeat_of(answer: Mapping[str, Any]) -> int:
    """Return the number of the repeat, from 0, of a request state or of a row of statistics."""
    return answer.get("train_trial_index") or 0


def replace_file(path: Path, *data: bytes, pieces: Iterable[bytes] = ()) -> None:
    """Write a file so that either the old or the new content is complete on disk, whenever the process ends."""
    # The temporary file is in the same folder, because `os.replace` is one step only within a disk.
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.writelines(chain(data, pieces))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write_looks(run: Path, looks: Iterable[int]) -> None:
    """Write after how many instances somebody looked at a run and could stop it, as tests must know."""
    replace_file(run / _LOOKS, orjson.dumps(sorted(looks)))


def read_looks(run: Path) -> tuple[int, ...]:
    """Return what `write_looks` wrote, ascending (nothing for a run of fixed size), or raise an `InputError`."""
    path = run / _LOOKS
    if not path.exists():
        return ()
    with reading(path):
        return tuple(sorted({int(size) for size in read_json(path)}))


def write_json(path: Path, content: Any) -> None:
    """Write one of HELM's objects, or a list of them, as HELM does, with `replace_file`.

    The file of a large run is several times larger than its objects, so it is written in pieces.

    Args:
        content: an iterator, here or in a field, is written as a list, so that its items need not be in memory.
    """
    # `read_rows` and `_split` rely on this indentation.
    replace_file(
        path, pieces=(piece.encode("ascii") for piece in _split_json(content, depth=2))
    )


def _split_json(value: Any, depth: int, margin: str = "\n") -> Iterator[str]:
    """Yield `to_json` of a value in pieces: the items of its lists and the fields of its records, down to a depth."""
    kind: Any = type(value)
    if not depth or isinstance(value, dict):
        yield to_json(value, margin)
    elif kind in (list, tuple) or isinstance(value, Iterator):
        yield from _split_items("[]", (("", item) for item in value), depth, margin)
    elif (names := _field_names(kind)) is not None:
        items = (
            (key, item)
            for name, key in names
            if (item := getattr(value, name)) is not None
        )
        yield from _split_items("{}", items, depth, margin)
    else:
        yield to_json(value, margin)


def _split_items(
    brackets: str, items: Iterable[tuple[str, Any]], depth: int, margin: str
) -> Iterator[str]:
    inner = margin + "  "
    between = brackets[0]
    for key, item in items:
        yield f"{between}{inner}{key}"
        yield from _split_json(item, depth - 1, inner)
        between = ","
    yield f"{margin}{brackets[1]}" if between == "," else brackets


def to_json(value: Any, margin: str = "\n") -> str:
    """Return what HELM's `asdict_without_nones` and Python's `json.dumps(…, indent=2)` make of a value, in less time.

    Both copy each value, and Python's C encoder does not indent before Python 3.14.

    Args:
        value: a dataclass, or anything that `json.dumps` takes. Keys in dictionaries are strings.
        margin: the newline and the spaces before the lines of the value.
    """
    kind: Any = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is int or (kind is float and isfinite(value)):
        return repr(value)
    # A run has a few dozen names of statistics, and each answer has all of them. HELM is not imported here.
    return (
        _name_to_json(value, margin)
        if kind.__name__ == "MetricName"
        else _to_json(value, margin)
    )


def _to_json(value: Any, margin: str) -> str:
    kind: Any = type(value)
    inner = margin + "  "
    if kind in (list, tuple):
        return _in_brackets("[]", [to_json(part, inner) for part in value], margin)
    if (names := _field_names(kind)) is not None:
        parts = [
            key + to_json(part, inner)
            for name, key in names
            if (part := getattr(value, name)) is not None
        ]
    elif isinstance(value, dict):
        parts = [
            f"{encode_basestring_ascii(key)}: {to_json(part, inner)}"
            for key, part in value.items()
        ]
    else:  # None, a boolean, NaN, an enum, or another subclass of a plain type
        return json.dumps(value)
    return _in_brackets("{}", parts, margin)


_name_to_json = cache(_to_json)


def _in_brackets(brackets: str, parts: list[str], margin: str) -> str:
    if not parts:
        return brackets
    inner = margin + "  "
    return f"{brackets[0]}{inner}{f',{inner}'.join(parts)}{margin}{brackets[1]}"


@cache
def _field_names(kind: Any) -> list[tuple[str, str]] | None:
    """Return the names of a dataclass's fields, each also as the start of its line in JSON. Other types have none."""
    if not is_dataclass(kind):
        return None
    return [
        (field.name, f"{encode_basestring_ascii(field.name)}: ")
        for field in fields(kind)
    ]


def find_incomplete_files(run_path: Path) -> list[str]:
    """Return the names of HELM's files of a run that are missing or cut off. Only the ends of the files are read."""
    incomplete = []
    for name in FILES:
        end = b""
        with suppress(OSError), (run_path / name).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            end = file.read().rstrip()
        # In indented JSON only the last bracket stands at the start of a line.
        if not end.endswith((b"\n}", b"\n]")) and end not in (b"{}", b"[]"):
            incomplete.append(name)
    return incomplete


def _split(path: Path) -> Iterator[State | bytes]:
    """Split a `scenario_state.json` into parsed request states and the bytes around them, in order.

    The layout is parsed here instead of by ijson: that is five to seven times slower on 100 MB, fails at NaN (HELM
    writes it) and replaces lone surrogates by question marks.
    """
    in_list = has_list = False
    last = b""
    with reading(path), path.open("rb") as file:
        lines = _Lines(file)
        while line := lines.read():
            last = line
            if in_list and line == _STATE:
                state, rest = _parse_object(lines, _STATE_END)
                yield state
                yield rest
                continue
            if line.startswith(_LIST_END if in_list else _EMPTY_LIST):
                in_list = False
                has_list = True
            in_list = in_list or line == _LIST
            yield line
        if not has_list or last.rstrip() != b"}":
            raise ValueError(
                "the list of request states, or the end of the file, is missing"
            )


class _Lines:
    """The lines of a file, of which many can be read at once: a run has hundreds for each answer."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._data = bytearray()
        self._at = 0

    def read(self) -> bytes:
        """Return the next line. It is empty at the end of the file."""
        end = self._find(b"\n", self._at)
        return self._take(len(self._data) if end < 0 else end + 1)

    def read_before(self, start: bytes) -> bytes:
        """Return all lines before the next one that starts with these bytes, or raise a `ValueError`."""
        # The line break before the first of these lines is still there.
        end = self._find(b"\n" + start, self._at - 1)
        if end < 0:
            raise ValueError("the last object has no end")
        return self._take(end + 1)

    def _take(self, end: int) -> bytes:
        start = self._at
        self._at = end
        return bytes(memoryview(self._data)[start:end])

    def _find(self, mark: bytes, begin: int) -> int:
        """Return the offset of a mark in the data, or -1. The data grows until it has the mark or the file ends."""
        while (offset := self._data.find(mark, begin)) < 0:
            begin = max(begin, len(self._data) - len(mark) + 1)
            gone = max(self._at - 1, 0)
            del self._data[:gone]
            self._at = self._at - gone
            begin = begin - gone
            if not (piece := self._file.read(_PIECE)):
                break
            self._data += piece
        return offset


def _parse_object(lines: _Lines, end: bytes) -> tuple[dict[str, Any], bytes]:
    """Parse an object from the lines after its first one. Also return the bytes after its last brace."""
    parsed: dict[str, Any] = parse(b"".join((b"{", lines.read_before(end), b"}")))
    return parsed, lines.read().removeprefix(end)


def parse(data: bytes) -> Any:
    """Parse JSON that HELM or this package has written. Raises a `ValueError` if it is damaged."""
    try:
        return orjson.loads(data)
    except ValueError:  # HELM may write NaN and lone surrogates, which orjson refuses
        return json.loads(data, parse_int=_parse_number, parse_float=_parse_number)


def _parse_number(digits: str) -> int | float:
    """Return a number. One that no float can hold, such as 1e400, is damage."""
    if math.isinf(value := float(digits)):
        raise ValueError("the number is too large")
    return int(digits) if digits.lstrip("-").isdigit() else value
