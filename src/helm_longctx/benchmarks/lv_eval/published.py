"""The scores that LV-Eval's authors published.

Source: infinigence/LVEval at 63e7ae9, README.md: ten models on eleven data sets at five lengths. Percentages with two
decimals.
"""

from __future__ import annotations

import csv
from importlib import resources

from helm_longctx.protocol.averages import Cell


def scores() -> dict[Cell, float]:
    """The 550 published scores."""
    return read_cells(
        (resources.files("helm_longctx.benchmarks.lv_eval") / "published.csv").read_text(encoding="utf-8")
    )


def read_cells(text: str) -> dict[Cell, float]:
    """A table with the columns model, dataset, length and score."""
    # The README's tables say "MR" where its code and files say "MIR".
    return {
        Cell(row["model"], row["dataset"].replace("-", "_").replace("loogle_MR_", "loogle_MIR_"), row["length"]): float(
            row["score"]
        )
        for row in csv.DictReader(text.splitlines())
    }
