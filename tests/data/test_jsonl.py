"""Files of many rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.sources.jsonl import JsonArray, JsonLines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.sampled_from('a"\\{}[],:\n\u2028é文')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('k"\\{}')), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), min_size=1, max_size=6)


@given(ROWS, st.sampled_from([None, 1, 4]), st.booleans())
def test_arrays_are_read_as_json_reads_them(rows: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    """Whatever stands in strings, and however the file is laid out."""
    path = Path("rows.json")
    path.write_text(json.dumps(rows, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    read = JsonArray(path, {})
    assert list(read) == rows
    assert list(read.rows([len(rows) - 1, 0])) == [rows[-1], rows[0]]


@given(ROWS)
def test_lines_are_read_as_json_reads_them(rows: list[dict[str, Any]]) -> None:
    """Lines end at a newline alone; blank lines are no rows."""
    path = Path("rows.jsonl")
    path.write_text("\n \n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8", newline="")
    assert list(JsonLines(path, {})) == rows


@pytest.mark.parametrize("kind", [JsonLines, JsonArray])
def test_what_is_wrong_is_said(kind: type[JsonLines | JsonArray], tmp_path: Path) -> None:
    """Without a file, without rows, with rows that lack a column."""
    path = tmp_path / "rows"
    with pytest.raises(InputError, match="rows: No such file"):
        kind(path, {})
    path.write_text("\n")
    with pytest.raises(InputError, match="the file has no rows"):
        kind(path, {})
    path.write_text('{"a": 1}' if kind is JsonLines else '[{"a": 1}]')
    with pytest.raises(InputError, match=r"rows(:1|: item 1): column 'a' must be str, found int"):
        list(kind(path, {"a": str}))


@pytest.mark.parametrize(
    "text", ["7", '{"a": 1}', '[{"a": 1}', '[{"a": 1}, {"b": ', '[{"a": "x', '[{"a": 1}]]}', '{"a": [{}]}']
)
def test_an_array_that_is_none_or_cut(text: str, tmp_path: Path) -> None:
    """A file without its end must not pass for one with fewer rows."""
    path = tmp_path / "rows"
    path.write_text(text)
    with pytest.raises(InputError, match=r"rows: not a (complete )?JSON array"):
        JsonArray(path, {})


def test_a_string_without_its_end_is_read_once(tmp_path: Path) -> None:
    """Each of its escaped quotes could begin a string; looking for the end of each took hours."""
    path = tmp_path / "rows"
    path.write_text('[{"a": "' + r"\"" * 1_000_000)
    with pytest.raises(InputError, match="not a complete JSON array"):
        JsonArray(path, {})
