"""The published scores and their averages."""

from __future__ import annotations

import pytest

from helm_longctx.core.averages import AVERAGE, Cell
from helm_longctx.lv_eval.datasets import DATASETS, LENGTHS
from helm_longctx.lv_eval.published import Difference, averages, inconsistent, published_averages, scores

NAMES = {dataset.name for dataset in DATASETS}


def test_the_table_is_whole() -> None:
    """Ten models on every data set at every length, and both kinds of averages, in 0…100."""
    cells = scores()
    models = {cell.model for cell in cells}
    assert len(models) == 10
    assert set(cells) == {Cell(model, name, length) for model in models for name in NAMES for length in LENGTHS}
    assert set(published_averages()) == set(averages(cells))
    assert all(0 <= score <= 100 for score in (*cells.values(), *published_averages().values()))


def test_averages() -> None:
    """Unweighted means over data sets and over lengths."""
    row = [30.70, 26.62, 17.62, 11.56, 7.17]
    computed = averages(scores())
    assert [round(computed[Cell("ChatGLM3-6B-32k", AVERAGE, length)], 2) for length in LENGTHS] == row
    two = {Cell("m", "a", "16k"): 1.0, Cell("m", "b", "16k"): 2.0}
    assert averages(two)[Cell("m", AVERAGE, "16k")] == 1.5
    assert averages(two)[Cell("m", "b", AVERAGE)] == 2


def test_inconsistent_cells() -> None:
    """One printed average is off by more than 0.01; it is not corrected here."""
    (only,) = inconsistent()
    cell = Cell("ChatGLM3-6B-32k", "multifieldqa_zh_mixup", AVERAGE)
    assert only == Difference(cell, 18.99, pytest.approx(18.976))
    assert inconsistent(0.005) == [only], "all others are right to the last digit"
