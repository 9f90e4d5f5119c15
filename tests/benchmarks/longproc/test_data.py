"""Malformed files of LongProc end in an error of one line, and the sources name the files that are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longproc.data import TASKS, problems, source
from helm_longctx.errors import InputError
from tests.benchmarks.longproc.fabricate import build_longproc


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build_longproc(tmp_path)


def error_of(root: Path, task: str, level: str) -> str:
    with pytest.raises(InputError) as caught:
        list(problems(task, level, root))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit(path: Path, **fields: Any) -> None:
    """Change fields of the second row."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    rows[1] |= fields
    path.write_text(json.dumps(rows), encoding="utf-8")


@pytest.mark.parametrize(
    ("task", "fields", "message"),
    [
        ("html_to_tsv", {"html_path": "webpage/none.html"}, "column 'html_path' names no readable page (FileNotFoundError)"),
        ("html_to_tsv", {"gt": None}, "column 'gt' must be str, found NoneType"),
        ("pseudo_to_code", {"code_lines": ["x", 1]}, "column 'code_lines' must hold texts alone"),
        ("path_traversal", {"question_repr": ["Oslo"]}, "column 'question_repr' must hold two cities"),
        ("tom_tracking", {"solution": 3}, "column 'solution' must be str, found int"),
        ("countdown", {"nums": [1, 2, 3]}, "column 'nums' must hold four whole numbers of at least 0"),
        ("countdown", {"nums": [1, 2, 3, -4]}, "column 'nums' must hold four whole numbers of at least 0"),
        ("countdown", {"nums": [1, 1, 1, 1], "target": 1999}, "column 'nums': the numbers cannot reach the target"),
        ("travel_planning", {"connected_cities": []}, "column 'constraints' gives no plan (ValueError)"),
        ("travel_planning", {"constraints": [{"city": "Oslo"}]}, "column 'constraints' gives no plan (KeyError)"),
    ],
)  # fmt: skip
def test_malformed_rows(
    root: Path, task: str, fields: dict[str, Any], message: str
) -> None:
    """The error names the file, the row and the field."""
    path = root / task / TASKS[task].file.format(task=task, level="2k")
    edit(path, **fields)
    assert error_of(root, task, "2k") == f"{path}: item 2: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        ("- x", "it is not a YAML file with the field USER_PROMPT (TypeError)"),
        ("'", "the file is not YAML: found unexpected end of stream; write plain YAML"),
        ("USER_PROMPT: '{story} {answer}'", "USER_PROMPT is not this task's template: unknown field 'answer'"),
        ("USER_PROMPT: '{story.__class__}'", "USER_PROMPT is not this task's template: unknown field 'story.__class__'"),
        ("USER_PROMPT: '{story:999}'", "USER_PROMPT is not this task's template: unknown field 'story'"),
        ("USER_PROMPT: '{story'", "USER_PROMPT is not this task's template: expected '}' before end of string"),
    ],
)  # fmt: skip
def test_malformed_templates(root: Path, text: str | None, message: str) -> None:
    """The error names the file of the template and what is wrong with it."""
    path = root / "tom_tracking/prompts.yaml"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    error = error_of(root, "tom_tracking", "2k")
    assert error.startswith(f"{path}:")
    assert error.endswith(f": {message}")


@pytest.mark.parametrize(
    ("task", "level"),
    [(task, level) for task, files in TASKS.items() for level in files.levels],
)
def test_sources_name_what_is_read(root: Path, task: str, level: str) -> None:
    """A task reads only the files that its source names, and the pages that its rows name."""
    kept = {Path(path).relative_to("longproc") for path in source(task, level).paths}
    for path in root.rglob("*"):
        if (
            path.is_file()
            and path.relative_to(root) not in kept
            and path.suffix != ".html"
        ):
            path.unlink()
    assert list(problems(task, level, root))
    assert all((root / path).is_file() for path in kept)


def test_pages_have_plain_line_ends(root: Path) -> None:
    """A page's line ends become newlines, as in Python's text mode."""
    first = next(problems("html_to_tsv", "2k", root))
    assert "\r" not in first.prompt
    assert "<ul>\n<li>{x} é" in first.prompt
