"""Scores by depth, and with and without a property of tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from helm_longctx.results.reading import Result, interval_of
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.metric_names import DEPTHS


class Split(NamedTuple):
    """A model's mean over the tasks with a property, and over the others, at a length."""

    model: str
    length: int | None
    trait: str
    with_it: Interval
    without: Interval


def by_depth(rows: Iterable[InstanceScore]) -> dict[int, Interval]:
    """Return the mean at each depth in percent, of answers with a score whose evidence has a depth."""
    depths: dict[int, list[InstanceScore]] = defaultdict(list)
    for row in rows:
        if row.depth is not None and row.score is not None:
            depths[nearest_depth(row.depth)].append(row)
    return {depth: interval_of(depths[depth]) for depth in sorted(depths)}


def nearest_depth(depth: float) -> int:
    """Return the depth in percent at which an answer counts."""
    return min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))


def splits(results: Iterable[Result], benchmark: Benchmark) -> list[Split]:
    """Average the tasks with each trait apart from those without, such as LV-Eval's sets with confusing facts.

    Models that lack a task at a length are left out there.
    """
    cells: dict[tuple[str, int | None], dict[str, Interval]] = defaultdict(dict)
    for each in results:
        if each.benchmark == benchmark.name and each.task and each.context == "full":
            cells[each.model, each.length][each.task] = each.interval
    tasks = [task for category in benchmark.categories if category.averaged for task in category.tasks]
    found = []
    for trait in dict.fromkeys(task.trait for task in tasks if task.trait):
        for (model, length), scores in cells.items():
            there = [task for task in tasks if task.exists_at(length)]
            parts = [[task.name for task in there if (task.trait == trait) == has] for has in (True, False)]
            if all(part and scores.keys() >= set(part) for part in parts):
                means = (mean_of_means([scores[name] for name in part]) for part in parts)
                found.append(Split(model, length, trait, *means))
    return found
