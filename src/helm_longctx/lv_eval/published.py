"""The scores that LV-Eval's authors published, and the averages that follow from them.

Source: infinigence/LVEval at 63e7ae9, README.md: ten models on eleven data sets at five lengths (published.csv), and
the averages printed there (published_averages.csv). Percentages with two decimals.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from importlib import resources
from statistics import fmean
from typing import NamedTuple

from helm_longctx.core.averages import Cell, averaged


class Difference(NamedTuple):
    """A printed average that is not the mean of the printed scores."""

    cell: Cell
    published: float
    recomputed: float


def scores() -> dict[Cell, float]:
    """The 550 published scores."""
    return _read("published.csv")


def published_averages() -> dict[Cell, float]:
    """The 160 printed averages: over data sets at each length, and over lengths on each data set."""
    return _read("published_averages.csv")


def averages(cells: Mapping[Cell, float]) -> dict[Cell, float]:
    """The same averages, computed: unweighted means."""
    return {cell: fmean(group) for cell, group in averaged(cells).items()}


def inconsistent(tolerance: float = 0.01) -> list[Difference]:
    """Printed averages that differ from the computed ones by more than `tolerance`, in the tables' order."""
    computed = averages(scores())
    pairs = (Difference(cell, score, computed[cell]) for cell, score in published_averages().items())
    return [pair for pair in pairs if abs(pair.published - pair.recomputed) > tolerance + 1e-9]


def _read(name: str) -> dict[Cell, float]:
    text = (resources.files("helm_longctx.lv_eval") / name).read_text(encoding="utf-8")
    return dict(_cells(csv.DictReader(text.splitlines())))


def _cells(table: Iterable[Mapping[str, str]]) -> Iterable[tuple[Cell, float]]:
    for row in table:
        # The README's tables say "MR" where its code and files say "MIR".
        dataset = row["dataset"].replace("-", "_").replace("loogle_MR_", "loogle_MIR_")
        yield Cell(row["model"], dataset, row["length"]), float(row["score"])
