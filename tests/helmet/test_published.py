"""The category means that HELMET's authors published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.protocol.lengths import STANDARD
from helm_longctx.report.reference import write_reference


def test_all_cells_are_there() -> None:
    """Seven categories, five lengths, 63 models, of which four have no 128k."""
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
    """Models by pattern, one length; a run has its category's score and group, and no tasks'."""
    runs = write_reference(HELMET, tmp_path, ["gpt-4o-*", "ProLong"], STANDARD["128k"])
    assert len(runs) == 4 * 7
    run = tmp_path / "helmet_rerank:length=128k,model=published_GPT-4o-08"
    assert orjson.loads((run / "run_spec.json").read_bytes())["groups"] == ["helmet_rerank_128k"]
    stats = {stat["name"]["name"]: stat["mean"] for stat in orjson.loads((run / "stats.json").read_bytes())}
    assert stats == {"longctx_score": 0.5, "published": 1.0}
    with pytest.raises(InputError, match=r"model='GPT-9'; there are: GPT-4, "):
        write_reference(HELMET, tmp_path, ["GPT-9"])
