"""The averages that were printed with the published scores (published_averages.csv)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple


class Cell(NamedTuple):
    """The key of a score in the tables."""

    model: str
    task: str
    length: str


def _read_printed() -> dict[Cell, float]:
    with (Path(__file__).parent / "published_averages.csv").open(
        encoding="utf-8"
    ) as file:
        return {
            Cell(row["model"], row["task"], row["length"]): float(row["score"])
            for row in csv.DictReader(file)
        }


PRINTED = _read_printed()
"""The printed averages, in percent."""
