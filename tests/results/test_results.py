"""Scores of tasks, categories and whole benchmarks, and what the authors printed of them."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from helm_longctx.benchmarks import BENCHMARKS, find_benchmark
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.metric_names import AVERAGE
from helm_longctx.report.comparability import Lack
from helm_longctx.report.reference import write_reference
from helm_longctx.report.results import (
    Result,
    best_results,
    category_results,
    overall_results,
    published_results,
    read_results,
)
from helm_longctx.statistics.correlation import matrix
from helm_longctx.statistics.intervals import Interval
from tests.lv_eval.test_published import PRINTED

TESTS = Path(__file__).parents[1]
HELMET, LV_EVAL = find_benchmark("helmet"), find_benchmark("lv_eval")

FIGURE_5 = """
rag .88
cite .74 .72
rerank .85 .85 .84
longqa .82 .92 .72 .87
summ .85 .89 .82 .89 .85
icl .61 .5 .34 .36 .51 .38
"""
"""HELMET's correlations at 128k: static/images/correlation_category_inst.png at aaab7dc (gh-pages). The columns are
recall and the rows before."""

FIGURE_3 = {"recall": (0.61, 0.74, 0.85, 0.82, 0.85, 0.77), "rag": (0.5, 0.72, 0.85, 0.92, 0.89, 0.78)}
"""Two rows of static/images/correlation_syn.png at aaab7dc, with ICL, Cite, Re-rank, LongQA, Summ and their mean. The
other rows are of tasks whose scores were not published."""


def model_table(results: Iterable[Result]) -> tuple[list[str], dict[str, list[float]]]:
    """The models, and for each task or category their scores in that order; NaN for a missing score."""
    results = list(results)
    models = list(dict.fromkeys(result.model for result in results))
    columns: dict[str, list[float]] = {}
    for result in results:
        column = columns.setdefault(result.task or result.category, [math.nan] * len(models))
        column[models.index(result.model)] = result.interval.mean
    return models, columns


def helmet_columns() -> dict[str, list[float]]:
    """The categories' scores at 128k of the 35 instruction-tuned models of the figures."""
    instruct = {row.model for row in HELMET.published() if row.instruct} - {"Llama-2-7B-32k-Inst"}
    rows = [
        row
        for row in category_results(published_results(HELMET), HELMET)
        if row.length == 131072 and row.model.removeprefix("published/") in instruct
    ]
    models, columns = model_table(rows)
    assert len(models) == 35
    return columns


def test_figure_5() -> None:
    """All 21 cells within 0.01."""
    found = matrix(helmet_columns())
    names, cells = ["recall"], 0
    for name, *printed in map(str.split, FIGURE_5.strip().splitlines()):
        for other, rho in zip(names, printed, strict=True):
            both = (name, other) if (name, other) in found else (other, name)
            assert found[both].rho == pytest.approx(float(rho), abs=0.01)
            assert found[both].low < float(rho) < found[both].high
            cells += 1
        names.append(name)
    assert cells == 21


@pytest.mark.parametrize("synthetic", FIGURE_3)
def test_figure_3(synthetic: str) -> None:
    """The rows of which the scores are published."""
    found = matrix(helmet_columns())
    others = ("icl", "cite", "rerank", "longqa", "summ")
    rhos = [found[synthetic, other].rho for other in others]
    assert [*rhos, sum(rhos) / 5] == pytest.approx(FIGURE_3[synthetic], abs=0.01)


def test_helmet_averages() -> None:
    """All 311 printed averages to 0.1. One is printed as 63.3 where the mean is 63.2."""
    with (TESTS / "helmet/published_averages.csv").open() as file:
        printed = {(row["model"], parse_length(row["length"])): float(row["average"]) for row in csv.DictReader(file)}
    rows = overall_results(category_results(published_results(HELMET), HELMET), HELMET)
    found = {(row.model.removeprefix("published/"), row.length): row.interval for row in rows}
    assert found.keys() == printed.keys()
    assert len(found) == 311
    for key, interval in found.items():
        assert interval is not None
        assert 100 * interval.mean == pytest.approx(printed[key], abs=0.1 + 1e-9)


def test_lv_eval_averages() -> None:
    """The printed averages over data sets, to 0.01."""
    rows = overall_results(category_results(published_results(LV_EVAL), LV_EVAL), LV_EVAL)
    labels = {length: ["16k", "32k", "64k", "128k", "256k"][place] for place, length in enumerate(LV_EVAL.lengths)}
    for row in rows:
        assert row.interval
        assert row.length
        key = (row.model.removeprefix("published/"), AVERAGE, labels[row.length])
        assert 100 * row.interval.mean == pytest.approx(PRINTED[key], abs=0.01)  # type: ignore[index]
    assert len(rows) == 50


def result(category: str, task: str, mean: float = 0.5, judge: str = "") -> Result:
    return Result(
        "helmet",
        category,
        task,
        "a/b",
        8192,
        "full",
        Interval(mean, mean - 0.1, mean + 0.1, 100),
        frozenset(filter(None, [judge])),
    )


def everything(judges: dict[str, str]) -> list[Result]:
    """A result for each task of the seven categories."""
    return [
        result(category.name, task.name, judge=judges.get(category.name, ""))
        for category in HELMET.categories
        if category.averaged
        for task in category.tasks_at(8192)
    ]


def test_an_overall_score_has_an_interval() -> None:
    """Of as many tasks it is narrower than of one."""
    (overall,) = overall_results(category_results(everything({}), HELMET), HELMET)
    assert overall.interval
    assert overall.interval.mean == pytest.approx(0.5)
    assert 0.45 < overall.interval.low < 0.5


def test_why_there_is_no_overall_score() -> None:
    """A category, a task, or one judge for all is missing."""
    whole = everything({})
    (missing,) = overall_results(category_results([r for r in whole if r.category != "cite"], HELMET), HELMET)
    assert (missing.interval, missing.reason) == (None, "no Cite")
    (partial,) = overall_results(category_results([r for r in whole if r.task != "qampari"], HELMET), HELMET)
    assert (partial.interval, partial.reason) == (None, "Cite: no score (qampari)")
    judged = everything({"longqa": "x/one", "summ": "x/two"})
    (judges,) = overall_results(category_results(judged, HELMET), HELMET)
    assert judges.interval is None
    assert judges.reason.startswith("judged by x/one and x/two (the benchmark's judge is ")
    same = everything({"longqa": "x/one", "summ": "x/one"})
    assert overall_results(category_results(same, HELMET), HELMET)[0].interval


def test_of_equal_runs_the_official_judge_s_counts() -> None:
    """Whatever the order of their names."""
    official = Result("b", "c", "t", "m", None, "full", Interval(0.5, 0.4, 0.6, 9))
    other = replace(official, lacks=(Lack("judge", "t"),))
    assert best_results([other, official]) == best_results([official, other]) == [official]
    more = replace(other, interval=Interval(0.5, 0.4, 0.6, 10))
    assert best_results([official, more]) == [more]


def test_a_suite(tmp_path: Path) -> None:
    """Own runs have intervals and judges, published ones have neither."""
    shutil.unpack_archive(TESTS / "runs/old_run.zip", tmp_path / "helmet_longqa:task=narrativeqa")
    write_reference(HELMET, tmp_path, ["ProLong"], 8192)
    rows = read_results(tmp_path, BENCHMARKS)
    (own,) = [row for row in rows if row.task]
    assert (own.model, own.interval.mean, own.judges) == ("longctx/lexical", 1.0, {"tests/plain"})
    assert own.interval.low < 0.5
    assert [lack.kind for lack in own.lacks] == ["num_samples", "judge"]
    (rag,) = [row for row in rows if row.category == "rag"]
    assert rag.model == "published/ProLong"
    assert math.isnan(rag.interval.low)
    assert length_label(rag.length or 0) == "8k"
    assert len(category_results(rows, HELMET)) == 8
