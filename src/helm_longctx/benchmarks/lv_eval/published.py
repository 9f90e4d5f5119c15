"""The scores that LV-Eval's authors published.

Source: infinigence/LVEval at 63e7ae9, README.md: ten models on eleven data sets at five lengths, as percentages with
two decimals.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from importlib import resources

from helm_longctx.benchmarks.lv_eval.datasets import LENGTHS
from helm_longctx.protocol.benchmark import Published
from helm_longctx.protocol.metric_names import Cell


def published_results() -> tuple[Published, ...]:
    """Return each model's scores at each length, 0 to 1."""
    results: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for cell, percent in read_scores().items():
        results[cell.model, cell.length][cell.task] = percent / 100
    return tuple(Published(model, "", LENGTHS[length], scores) for (model, length), scores in results.items())


def read_scores() -> dict[Cell, float]:
    """Return the 550 published scores, in percent."""
    folder = resources.files("helm_longctx.benchmarks.lv_eval")
    return parse_scores((folder / "published.csv").read_text(encoding="utf-8"))


def parse_scores(text: str) -> dict[Cell, float]:
    """Parse a CSV table with the columns model, dataset, length and score."""
    scores = {}
    for row in csv.DictReader(text.splitlines()):
        # The README's tables say "MR" where the official code and files say "MIR".
        dataset = row["dataset"].replace("-", "_").replace("loogle_MR_", "loogle_MIR_")
        scores[Cell(row["model"], dataset, row["length"])] = float(row["score"])
    return scores
