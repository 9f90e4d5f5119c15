"""Which scores are averaged: tasks at each length, and lengths of each task, as in LV-Eval's published tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

Score = TypeVar("Score")

AVERAGE = "average"
"""Stands for a task or a length in the key of an average over them."""


class Cell(NamedTuple):
    """Where a score stands in the tables; `length` such as `16k`."""

    model: str
    task: str
    length: str


def averaged(cells: Mapping[Cell, Score]) -> dict[Cell, list[Score]]:
    """For each average the scores whose unweighted mean it is: of tasks at a length, and of lengths for a task."""
    groups: dict[Cell, list[Score]] = defaultdict(list)
    for cell, score in cells.items():
        groups[cell._replace(task=AVERAGE)].append(score)
        groups[cell._replace(length=AVERAGE)].append(score)
    return groups
