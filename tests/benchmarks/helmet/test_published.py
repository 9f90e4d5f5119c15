"""The category means that HELMET's authors published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.protocol.lengths import STANDARD
from helm_longctx.report.reference import read_reference, write_reference


def test_all_cells_are_there() -> None:
    """Seven categories, five lengths, 63 models at each length and 59 at 128k, two of which have no other length."""
    rows = HELMET.published()
    assert {row.category for row in rows} == {category.name for category in HELMET.categories if category.averaged}
    counts = Counter(row.length for row in rows if row.category == "recall")
    assert counts == {STANDARD[label]: 59 if label == "128k" else 63 for label in ("8k", "16k", "32k", "64k", "128k")}
    assert all(0 <= score <= 1 for row in rows for score in row.scores.values())


@pytest.mark.parametrize(("length", "printed"), [("8k", 65.5), ("32k", 66.2), ("128k", 64.8)])
def test_averages(length: str, printed: float) -> None:
    """The mean over categories is the printed average."""
    scores = [
        row.scores[""] for row in HELMET.published() if (row.model, row.length) == ("GPT-4o-08", STANDARD[length])
    ]
    assert 100 * sum(scores) / 7 == pytest.approx(printed, abs=0.06)


def test_some_are_written(tmp_path: Path) -> None:
    """Models by pattern, one length; a row has its category's score and group, and no tasks'. Rows are added once."""
    for _ in range(2):
        assert write_reference(HELMET, tmp_path, ["gpt-4o-*", "ProLong"], STANDARD["128k"]) == 4 * 7
    runs = list(read_reference(tmp_path, [HELMET]))
    assert len(runs) == 4 * 7
    assert write_reference(HELMET, tmp_path, ["ProLong"], STANDARD["8k"]) == 7
    assert len(list(read_reference(tmp_path, [HELMET]))) == 5 * 7
    (rerank,) = [
        each
        for each in runs
        if each.spec["groups"] == ["helmet_rerank_128k"] and each.spec["adapter_spec"]["model"] == "published/GPT-4o-08"
    ]
    assert {stat["name"]["name"]: stat["mean"] for stat in rerank.stats} == {"longctx_score": 0.5, "published": 1.0}
    with pytest.raises(InputError, match=r"model='GPT-9'; allowed: GPT-4, "):
        write_reference(HELMET, tmp_path, ["GPT-9"])


def test_published_results_cost_one_folder(tmp_path: Path) -> None:
    """It is a run to HELM, without groups, whose page names the source."""
    write_reference(HELMET, tmp_path)
    (run,) = tmp_path.iterdir()
    spec, scenario = (orjson.loads((run / f"{name}.json").read_bytes()) for name in ("run_spec", "scenario"))
    assert (run.name, spec["name"], spec["groups"]) == ("published_helmet", "published_helmet", [])
    assert HELMET.url in scenario["description"]
    assert {each.spec["name"] for each in read_reference(tmp_path, [HELMET])} == {run.name}
