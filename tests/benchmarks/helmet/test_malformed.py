"""Malformed rows of HELMET end in an error of one line before a model is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.jsonl import FileRow, find_row
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm.scenario import LongContextScenario

MSMARCO = "helmet/msmarco/test_reranking_data_k50_dep3.jsonl"
NQ = "helmet/kilt/nq-dev-multikilt_1000_k50_dep6.jsonl"
LEXSUM = "hub/allenai__multi_lexsum/validation.jsonl"
ASQA = "helmet/alce/asqa_eval_gtr_top2000.json"
NARRATIVEQA = "hub/narrativeqa/test.jsonl"


@pytest.mark.parametrize(
    ("path", "change", "entry", "task", "told"),
    [
        (
            MSMARCO,
            lambda row: row["ctxs"][0].update(id=5),
            "rerank",
            "msmarco",
            "does not have msmarco's format",
        ),
        (
            MSMARCO,
            lambda row: row["ctxs"][0].update(label=None),
            "rerank",
            "msmarco",
            "format: TypeError",
        ),
        (
            NQ,
            lambda row: row.update(answers=[3]),
            "rag",
            "nq",
            "nq-0 has answers that are not strings",
        ),
        (
            LEXSUM,
            lambda row: row.update(sources=[None]),
            "summ",
            "multi_lexsum",
            "does not have multi_lexsum's format",
        ),
        (
            NARRATIVEQA,
            lambda row: row["answers"].append({}),
            "longqa",
            "narrativeqa",
            "format: KeyError 'text'",
        ),
        (
            NARRATIVEQA,
            lambda row: row.update(document={"text": "short"}),
            "longqa",
            "narrativeqa",
            "no row can be used",
        ),
    ],
)
def test_malformed_rows(
    mirror: DataRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    change: Callable[[dict[str, Any]], None],
    entry: str,
    task: str,
    told: str,
) -> None:
    """The message is one line that names the file and says what is wrong."""
    rows = _copy_but(mirror, tmp_path, path)
    for row in rows:
        change(row)
    message = _loading_error(tmp_path, monkeypatch, path, rows, entry, task=task)
    assert str(tmp_path / path) in message
    assert told in message


@pytest.mark.parametrize(
    ("path", "change", "entry", "task", "reason"),
    [
        (
            MSMARCO,
            lambda row: row["ctxs"][0].update(label=None),
            "rerank",
            "msmarco",
            "TypeError",
        ),
        (
            MSMARCO,
            lambda row: row["ctxs"][0].pop("label"),
            "rerank",
            "msmarco",
            "KeyError 'label'",
        ),
        (
            LEXSUM,
            lambda row: row.update(sources=[None]),
            "summ",
            "multi_lexsum",
            "TypeError",
        ),
        (
            NARRATIVEQA,
            lambda row: row["answers"].append({}),
            "longqa",
            "narrativeqa",
            "KeyError 'text'",
        ),
        (
            ASQA,
            lambda row: row["qa_pairs"][0].pop("short_answers"),
            "cite",
            "asqa",
            "KeyError 'short_answers'",
        ),
    ],
)
def test_the_row_is_named(
    mirror: DataRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
    change: Callable[[dict[str, Any]], None],
    entry: str,
    task: str,
    reason: str,
) -> None:
    """The message names the row and the field, and the place in the code goes to the log at debug level."""
    caplog.set_level("DEBUG", "helm_longctx")
    rows = _copy_but(mirror, tmp_path, path)
    change(rows[12])
    message = _loading_error(
        tmp_path, monkeypatch, path, rows, entry, task=task, num_samples=1000
    )
    assert message.startswith(
        f"row 13 of {tmp_path / path} does not have {task}'s format: {reason}"
    )
    assert any(
        record.levelname == "DEBUG" and "File " in record.message
        for record in caplog.records
    )
    assert not any(
        "File " in record.message
        for record in caplog.records
        if record.levelname != "DEBUG"
    )


def test_no_row_is_named_where_it_may_be_any() -> None:
    """No row is named if the code that fails holds two rows, either of which may be wrong."""
    one, other = (FileRow({"a": number}, Path("f.jsonl"), number) for number in (1, 2))

    def compare(left: FileRow, right: FileRow) -> bool:
        return left["b"] < right["b"]

    def fail() -> TracebackType | None:
        try:
            compare(one, other)
        except KeyError as error:
            return error.__traceback__
        raise AssertionError

    assert find_row(fail()) is None


def _copy_but(mirror: DataRoot, folder: Path, path: str) -> list[dict[str, Any]]:
    """Link all files of the mirror but one into a folder, and return the rows of that one."""
    for file in mirror.path.rglob("*"):
        if file.is_file() and file != mirror / path:
            linked = folder / file.relative_to(mirror.path)
            linked.parent.mkdir(parents=True, exist_ok=True)
            linked.symlink_to(file)
    text = (mirror / path).read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = (
        json.loads(text)
        if path.endswith(".json")
        else [json.loads(line) for line in text.split("\n") if line]
    )
    return rows


def _loading_error(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    rows: list[dict[str, Any]],
    entry: str,
    **arguments: Any,
) -> str:
    """Return the one line of the error that ends the loading of the rows."""
    text = (
        json.dumps(rows)
        if path.endswith(".json")
        else "".join(json.dumps(row) + "\n" for row in rows)
    )
    (folder / path).write_text(text, encoding="utf-8")
    monkeypatch.setenv("HELM_LONGCTX_DATA", str(folder))
    scenario = LongContextScenario(
        f"helmet_{entry}", HELMET.revision, length="8k", **arguments
    )
    with pytest.raises(InputError) as caught:
        list(scenario.iter_instances(str(folder / "scenarios/helmet")))
    assert "\n" not in str(caught.value)
    return str(caught.value)
