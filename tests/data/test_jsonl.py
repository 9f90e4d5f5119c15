"""Tests of files of many rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.data.jsonl import JsonArray, JsonLines, parse_json, read_object
from helm_longctx.errors import InputError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.sampled_from('a"\\{}[],:\n\u2028é文')),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.sampled_from('k"\\{}')), inner, max_size=3)
    ),
    max_leaves=8,
)
NUMBERS = st.recursive(
    st.integers()
    | st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1])
    | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "\ud83d"]), inner, max_size=2)
    ),
    max_leaves=8,
)
ROWS = st.lists(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=3), min_size=1, max_size=6
)


@given(ROWS, st.sampled_from([None, 1, 4]), st.booleans())
def test_arrays_are_read_as_json_reads_them(
    rows: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    """Arrays are read as `json` reads them, whatever strings contain and however the file is laid out."""
    path = Path("rows.json")
    path.write_text(
        json.dumps(rows, indent=indent, ensure_ascii=ascii_only), encoding="utf-8"
    )
    read = JsonArray(path, {})
    assert list(read) == rows
    assert list(read.rows([len(rows) - 1, 0])) == [rows[-1], rows[0]]


@given(ROWS)
def test_lines_are_read_as_json_reads_them(rows: list[dict[str, Any]]) -> None:
    """Lines end only at a newline, and blank lines are not rows."""
    path = Path("rows.jsonl")
    path.write_text(
        "\n \n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        encoding="utf-8",
        newline="",
    )
    assert list(JsonLines(path, {})) == rows


@given(NUMBERS, st.booleans())
def test_numbers_are_read_as_python_reads_them(value: Any, is_nested: bool) -> None:
    """Integers of any size, floats, NaN, infinity and lone surrogates are read as Python reads them."""
    text = json.dumps({"x": [value]} if is_nested else value)
    read = parse_json(text.encode())
    # `repr` tells 1 and 1.0 apart, and NaN equals itself.
    assert repr(read) == repr(json.loads(text))


def test_rows_with_long_integers(tmp_path: Path) -> None:
    """Rows, items of an array and objects with long integers are read by the same reader."""
    row = {"a": [12345678901234567890123, -(10**20)], "b": {"c": 2**64}}
    for reader, text in (
        (JsonLines, json.dumps(row)),
        (JsonArray, json.dumps([row], indent=1)),
    ):
        path = tmp_path / "rows"
        path.write_text(text)
        assert list(reader(path, {})) == [row]
        assert repr(dict(next(iter(reader(path, {}))))) == repr(row)
    path.write_text(json.dumps(row))
    assert repr(read_object(path)) == repr(row)


@pytest.mark.parametrize(("data", "what"), [
    (b'{"a": "M\xfcller"}', "the text is not UTF-8; save the file in UTF-8"),
    (b'{"a": 1,}', "not a JSON object: .* at character [89]"),  # Python 3.13 names the comma, earlier ones what follows
    (b"[1]", "not a JSON object but list"),
    (b"[" * 100_000, "not a JSON object: "),
])  # fmt: skip
def test_a_row_that_is_not_an_object(data: bytes, what: str, tmp_path: Path) -> None:
    """For a row that is not an object, the error names the line and says what to do."""
    path = tmp_path / "rows"
    path.write_bytes(b'{"a": 1}\n\n' + data)
    with pytest.raises(InputError, match=f"rows:3: {what}"):
        list(JsonLines(path, {}))
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"rows: {what}"):
        read_object(path)


@pytest.mark.parametrize("kind", [JsonLines, JsonArray])
def test_what_is_wrong_is_said(
    kind: type[JsonLines | JsonArray], tmp_path: Path
) -> None:
    """A missing file, a file without rows and a row without a column are reported."""
    path = tmp_path / "rows"
    with pytest.raises(InputError, match="rows: No such file"):
        kind(path, {})
    path.write_text("\n")
    with pytest.raises(InputError, match="the file has no rows"):
        kind(path, {})
    path.write_text('{"a": 1}' if kind is JsonLines else '[{"a": 1}]')
    with pytest.raises(
        InputError, match=r"rows(:1|: item 1): column 'a' must be str, found int"
    ):
        list(kind(path, {"a": str}))


@pytest.mark.parametrize(
    "text",
    [
        "7",
        '{"a": 1}',
        '[{"a": 1}',
        '[{"a": 1}, {"b": ',
        '[{"a": "x',
        '[{"a": 1}]]}',
        '{"a": [{}]}',
    ],
)
def test_an_array_that_is_none_or_cut(text: str, tmp_path: Path) -> None:
    """A file without its end is refused, and does not pass for a file with fewer rows."""
    path = tmp_path / "rows"
    path.write_text(text)
    with pytest.raises(InputError, match=r"rows: not a (complete )?JSON array"):
        JsonArray(path, {})


def test_a_string_without_its_end_is_read_once(tmp_path: Path) -> None:
    """A string without its end is read once, although each of its escaped quotes could begin a string."""
    path = tmp_path / "rows"
    path.write_text('[{"a": "' + r"\"" * 1_000_000)
    with pytest.raises(InputError, match="not a complete JSON array"):
        JsonArray(path, {})
