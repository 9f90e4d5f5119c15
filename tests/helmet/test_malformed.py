"""Rows that are not as the release has them end in one line, before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.sources.root import DataRoot

MSMARCO = "helmet/msmarco/test_reranking_data_k50_dep3.jsonl"
NQ = "helmet/kilt/nq-dev-multikilt_1000_k50_dep6.jsonl"
LEXSUM = "hub/allenai__multi_lexsum/validation.jsonl"
NARRATIVEQA = "hub/narrativeqa/test.jsonl"


@pytest.mark.parametrize(
    ("path", "change", "entry", "task", "told"),
    [
        (MSMARCO, lambda row: row["ctxs"][0].update(id=5), "rerank", "msmarco", "does not have msmarco's format"),
        (MSMARCO, lambda row: row["ctxs"][0].update(label=None), "rerank", "msmarco", "TypeError"),
        (NQ, lambda row: row.update(answers=[3]), "rag", "nq", "nq-0 has answers that are not strings"),
        (LEXSUM, lambda row: row.update(sources=[None]), "summ", "multi_lexsum", "does not have multi_lexsum's format"),
        (NARRATIVEQA, lambda row: row["answers"].append({}), "longqa", "narrativeqa", "KeyError 'text'"),
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
    """The message names the file and what is wrong, and is one line."""
    for file in mirror.path.rglob("*"):
        if file.is_file() and file != mirror / path:
            linked = tmp_path / file.relative_to(mirror.path)
            linked.parent.mkdir(parents=True, exist_ok=True)
            linked.symlink_to(file)
    rows = [json.loads(line) for line in (mirror / path).open(encoding="utf-8")]
    for row in rows:
        change(row)
    (tmp_path / path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("HELM_LONGCTX_DATA", str(tmp_path))
    scenario = LongContextScenario(f"helmet_{entry}", HELMET.revision, task=task, length="8k")
    with pytest.raises(InputError) as caught:
        list(scenario.iter_instances(str(tmp_path / "scenarios/helmet")))
    assert str(tmp_path / path) in str(caught.value)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
