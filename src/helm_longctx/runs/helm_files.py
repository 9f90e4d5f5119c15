"""HELM's files of a run: written in HELM's layout, and read one object at a time.

The five files of a run of ours are an export of its records. HELM's own runner makes the same files without records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from helm_longctx.runs.files import (
    INSTANCE_STATS,
    RUN_SPEC,
    SCENARIO,
    STATES,
    STATS,
    parse,
    read_json,
    reading,
)
from helm_longctx.writing import replace_file

State = dict[str, Any]
"""A request state as plain data."""

StatisticsRow = dict[str, Any]
"""The statistics of an answer as plain data."""

# HELM indents its JSON by two spaces and escapes newlines in texts, so these lines can only be outer brackets.
_STATES_BEGIN = b'  "request_states": [\n'
_NO_STATES = b'  "request_states": []'
_ROWS_BEGIN = b"[\n"

_OTHER_NUMBERS = (
    re.compile(rb"e[-+]?[0-9]{1,3},?\n"),
    re.compile(rb"0\.0000[0-9]{1,25},?\n"),
)
"""The end of a line with a number that Python writes in another way: one with an exponent, or one below 0.0001 without.

Each pattern begins with a text, because the search for it is fast. No text of JSON ends a line: a quotation mark does.
"""

_PASS_DATACLASSES = orjson.OPT_PASSTHROUGH_DATACLASS


def read_states(path: Path) -> Iterator[State]:
    """Read the request states of a `scenario_state.json`, one at a time. Raises an `InputError`."""
    with reading(path), path.open("rb") as file:
        has_states = False
        for line in file:
            if line == _STATES_BEGIN:
                has_states = True
                yield from _read_objects(file, margin=b"    ")
            elif line.startswith(_NO_STATES):
                has_states = True
            last = line
        if not has_states or last.rstrip() != b"}":
            raise ValueError("the request states, or the end of the file, are missing")


def read_rows(path: Path) -> Iterator[StatisticsRow]:
    """Read a list of objects, one at a time in HELM's layout. Raises an `InputError`."""
    with reading(path), path.open("rb") as file:
        # An empty list is on one line, and other programs can write another layout.
        if file.readline() == _ROWS_BEGIN:
            yield from _read_objects(file, margin=b"  ")
        else:
            yield from read_json(path)


def _read_objects(file: BinaryIO, margin: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list whose lines begin with a margin, up to the end of the list.

    ijson would read any layout. It takes several times as long, fails at NaN, which HELM writes, and replaces lone
    surrogates.
    """
    inner = margin + b"  "
    first = margin + b"{\n"
    last = margin + b"}"
    end = margin[2:] + b"]"
    lines: list[bytes] = []
    for line in file:
        if line.startswith(inner):  # nearly all lines
            lines.append(line)
        elif line == first:
            lines = [b"{"]
        elif line.startswith(last):
            yield parse(b"".join([*lines, b"}"]))
        elif line.startswith(end):
            return
        else:
            lines.append(line)
    raise ValueError("the end of the list is missing")


def write_states(
    path: Path,
    adapter_spec: Any,
    annotator_specs: Any,
    states: Iterable[Any],
) -> None:
    """Write a `scenario_state.json`.

    Args:
        annotator_specs: the annotators of the run spec; None if it has none.
        states: request states, as HELM's objects or as plain data. One at a time is in memory.
    """

    def make_pieces() -> Iterator[bytes]:
        yield b'{\n  "adapter_spec": ' + _dump(adapter_spec, b"  ")
        yield b',\n  "request_states": '
        yield from _dump_list(states, b"  ")
        if annotator_specs is not None:
            yield b',\n  "annotator_specs": ' + _dump(annotator_specs, b"  ")
        yield b"\n}"

    replace_file(path, pieces=make_pieces())


def write_helm_files(
    run: Path,
    spec: Any,
    scenario: Any,
    states: Iterable[Any],
    stats: Iterable[Any],
    rows: Iterable[Any],
) -> None:
    """Write HELM's files of a run in HELM's order. A run that has the last one is complete.

    Args:
        spec: the run spec. This and the other arguments are HELM's objects, or the same as plain data.
        stats: the statistics of the whole run.
        rows: the statistics of each answer. One at a time is in memory.
    """
    about = to_plain(spec)
    replace_file(run / RUN_SPEC, _dump(about))
    replace_file(run / SCENARIO, _dump(scenario))
    write_states(run / STATES, about["adapter_spec"], about.get("annotators"), states)
    replace_file(run / STATS, pieces=_dump_list(stats))
    replace_file(run / INSTANCE_STATS, pieces=_dump_list(rows))


def to_plain(value: Any) -> Any:
    """Return one of HELM's objects as plain data, without absent fields."""
    return parse(to_json(value))


def to_json(value: Any) -> bytes:
    """Return plain data or one of HELM's objects as JSON on one line, with NaN and lone surrogates as Python has them."""
    data = _dump_without_null(value, _PASS_DATACLASSES)
    if data is not None:
        return data
    return json.dumps(value, default=_list_fields).encode("ascii")


def _dump_list(items: Iterable[Any], margin: bytes = b"") -> Iterator[bytes]:
    """Yield the pieces of a list in HELM's layout."""
    inner = margin + b"  "
    before = b"[\n"
    for item in items:
        yield before + inner + _dump(item, inner)
        before = b",\n"
    yield b"[]" if before == b"[\n" else b"\n" + margin + b"]"


def _dump(value: Any, margin: bytes = b"") -> bytes:
    """Return a value as HELM writes it, with a margin before all lines but the first."""
    return _to_indented_json(value).replace(b"\n", b"\n" + margin)


def _to_indented_json(value: Any) -> bytes:
    # HELM's files have escapes for other characters than ASCII, and exponents as Python writes them.
    data = _dump_without_null(value, _PASS_DATACLASSES | orjson.OPT_INDENT_2)
    if data is not None and data.isascii() and not _has_other_number(data):
        return data
    return json.dumps(value, default=_list_fields, indent=2).encode("ascii")


def _has_other_number(data: bytes) -> bool:
    return any(pattern.search(data) for pattern in _OTHER_NUMBERS)


def _dump_without_null(value: Any, options: int) -> bytes | None:
    """Return a value as JSON, or None if orjson cannot write it or writes a null.

    Python's encoder takes 10 times as long, and 80 times with indentation. But orjson writes NaN as null, and refuses
    lone surrogates.
    """
    try:
        data = orjson.dumps(value, default=_list_fields, option=options)
    except TypeError:
        return None
    if b"null" in data:
        return None
    return data


def _list_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are not None, as HELM's `asdict_without_nones`."""
    kind: Any = type(value)
    present = {}
    for name in _field_names(kind):
        part = getattr(value, name)
        if part is not None:
            present[name] = part
    return present


@cache
def _field_names(kind: Any) -> list[str]:
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is no dataclass")
    return [field.name for field in fields(kind)]
