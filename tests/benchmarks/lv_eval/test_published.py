"""The published scores, and the averages that were printed beside them (published_averages.csv) against ours."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

import pytest

from helm_longctx.benchmarks.lv_eval.datasets import DATASETS, LENGTHS
from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.metric_names import AVERAGE, Cell, group_for_averages

NAMES = {dataset.name for dataset in DATASETS}


def _read_printed() -> dict[Cell, float]:
    with (Path(__file__).parent / "published_averages.csv").open(encoding="utf-8") as file:
        return {Cell(row["model"], row["task"], row["length"]): float(row["score"]) for row in csv.DictReader(file)}


PRINTED = _read_printed()
"""The printed averages, in percent."""


def published_cells() -> dict[Cell, float]:
    """The published scores, in percent."""
    return {
        Cell(row.model, task, length_label(row.length or 0)): 100 * score
        for row in LV_EVAL.published()
        for task, score in row.scores.items()
    }


def averages(cells: dict[Cell, float]) -> dict[Cell, float]:
    return {cell: fmean(group) for cell, group in group_for_averages(cells).items()}


def test_the_table_is_whole() -> None:
    """Ten models on every data set at every length, and both kinds of averages, in 0…100."""
    cells = published_cells()
    models = {cell.model for cell in cells}
    assert len(models) == 10
    assert set(cells) == {Cell(model, name, length) for model in models for name in NAMES for length in LENGTHS}
    assert set(PRINTED) == set(averages(cells))
    assert all(0 <= score <= 100 for score in (*cells.values(), *PRINTED.values()))


def test_averages() -> None:
    """Unweighted means over data sets and over lengths."""
    two = {Cell("m", "a", "16k"): 1.0, Cell("m", "b", "16k"): 2.0}
    assert averages(two)[Cell("m", AVERAGE, "16k")] == 1.5
    assert averages(two)[Cell("m", "b", AVERAGE)] == 2


def test_printed_averages() -> None:
    """All of them to the last digit, but for one that is off by more than 0.01; it is not corrected here."""
    computed = averages(published_cells())
    odd = {
        cell: (printed, computed[cell])
        for cell, printed in PRINTED.items()
        if abs(printed - computed[cell]) > 0.005 + 1e-9
    }
    assert odd == {Cell("ChatGLM3-6B-32k", "multifieldqa_zh_mixup", AVERAGE): (18.99, pytest.approx(18.976))}
