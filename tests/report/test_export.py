"""A suite's scores for other programs."""

from __future__ import annotations

import pytest

from helm_longctx.report.export import Average, Score, averages


def score(task: str, length: str, value: float, metric: str = "longctx_score") -> Score:
    return Score("run", "m", "lv_eval", task, length, "full", metric, value, 9)


def test_averages() -> None:
    """Tasks at each length and lengths of each task, without weights; how many they are is told."""
    rows = [score("a", "16k", 0.2), score("b", "16k", 0.6), score("a", "32k", 0.3), score("a", "32k", 1, "f1")]
    assert {(row.task, row.length): row[5:] for row in averages(rows)} == {
        ("average", "16k"): (pytest.approx(0.4), 2),
        ("average", "32k"): (0.3, 1),
        ("a", "average"): (0.25, 2),
        ("b", "average"): (0.6, 1),
    }
    assert next(averages(rows)) == Average("m", "lv_eval", "average", "16k", "full", pytest.approx(0.4), 2)


def test_runs_of_other_kinds_are_not_mixed() -> None:
    """Other entries and contexts have averages of their own."""
    rows = [score("a", "16k", 0.2), score("a", "16k", 0.4)._replace(context="none")]
    rows.append(score("a", "16k", 0.6)._replace(entry="helmet_rag"))
    assert [(row.entry, row.context, row.score) for row in averages(rows) if row.length == "average"] == [
        ("helmet_rag", "full", 0.6), ("lv_eval", "full", 0.2), ("lv_eval", "none", 0.4)
    ]  # fmt: skip
