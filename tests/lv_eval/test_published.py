"""The published scores, and the averages that were printed beside them (published_averages.csv) against ours."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from helm_longctx.benchmarks.lv_eval.datasets import DATASETS, LENGTHS
from helm_longctx.benchmarks.lv_eval.published import parse_scores, read_scores
from helm_longctx.protocol.metric_names import AVERAGE, Cell, group_for_averages

NAMES = {dataset.name for dataset in DATASETS}
PRINTED = parse_scores((Path(__file__).parent / "published_averages.csv").read_text(encoding="utf-8"))


def averages(cells: dict[Cell, float]) -> dict[Cell, float]:
    return {cell: fmean(group) for cell, group in group_for_averages(cells).items()}


def test_the_table_is_whole() -> None:
    """Ten models on every data set at every length, and both kinds of averages, in 0…100."""
    cells = read_scores()
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
    computed = averages(read_scores())
    odd = {
        cell: (printed, computed[cell])
        for cell, printed in PRINTED.items()
        if abs(printed - computed[cell]) > 0.005 + 1e-9
    }
    assert odd == {Cell("ChatGLM3-6B-32k", "multifieldqa_zh_mixup", AVERAGE): (18.99, pytest.approx(18.976))}
