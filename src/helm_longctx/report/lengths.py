"""What scores do over lengths and depths, with and without a property of tasks, and above baselines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from helm_longctx.protocol.metric_names import DEPTHS
from helm_longctx.protocol.task import Benchmark
from helm_longctx.report.confs import DEMO_MODELS
from helm_longctx.report.results import Result, interval_of
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.statistics.intervals import Interval, mean_of_means
from helm_longctx.statistics.lengths import above_floor, drop, effective_length, share_of_shortest


class OverLengths(NamedTuple):
    """A model's scores in a task or category over lengths.

    Args:
        scores: the score at each length, from the shortest.
        drop: from the shortest to the longest length; None for one length.
        effective: the longest length with at least 85 % of the score at the shortest, after NoLiMa.
        ruler: the longest length with at least RULER's threshold; it is RULER's effective length only for the mean of
            RULER's 13 tasks.
    """

    model: str
    category: str
    task: str
    scores: dict[int, Interval]
    drop: Interval | None
    effective: int | None
    ruler: int | None


class Floor(NamedTuple):
    """The best score without reading, or with a word search, and what a score is above it.

    Args:
        baselines: by name: `longctx/null`, `longctx/lexical`, and `closed book` for the same model without contexts.
        above: (score - floor) / (1 - floor), where the floor is the highest baseline; None without baselines.
    """

    result: Result
    baselines: dict[str, Interval]
    above: float | None


class Split(NamedTuple):
    """A model's mean over the tasks with a property, and over the others, at a length."""

    model: str
    length: int | None
    trait: str
    with_it: Interval
    without: Interval


def over_lengths(results: Iterable[Result]) -> list[OverLengths]:
    """Gather the results of each model and task, or category, over its lengths; without closed-book runs."""
    groups: dict[tuple[str, str, str], dict[int, Interval]] = defaultdict(dict)
    for each in results:
        if each.length is not None and each.context == "full":
            groups[each.model, each.category, each.task][each.length] = each.interval
    return [_over_lengths(*key, dict(sorted(scores.items()))) for key, scores in groups.items()]


def by_depth(rows: Iterable[InstanceScore]) -> dict[int, Interval]:
    """Return the mean at each depth in percent, of answers whose evidence has a depth."""
    depths: dict[int, list[InstanceScore]] = defaultdict(list)
    for row in rows:
        if row.depth is not None:
            depth = row.depth
            depths[min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))].append(row)
    return {depth: interval_of(depths[depth]) for depth in sorted(depths)}


def floors(results: Iterable[Result]) -> list[Floor]:
    """Put the baselines of the same task, or category, and length beside each result with contexts.

    The baselines are the null model, the lexical model, and the same model without contexts.
    """
    results = list(results)
    found = {(_place(each), each.model, each.context): each.interval for each in results}
    floors = []
    for each in results:
        if each.context != "full" or each.model in DEMO_MODELS:
            continue
        keys = {**{name: (name, "full") for name in DEMO_MODELS}, "closed book": (each.model, "none")}
        places = {name: (_place(each), *key) for name, key in keys.items()}
        baselines = {name: found[place] for name, place in places.items() if place in found}
        floor = max((baseline.mean for baseline in baselines.values()), default=None)
        above = None if floor is None else above_floor(each.interval.mean, floor)
        floors.append(Floor(each, baselines, above))
    return floors


def _place(result: Result) -> tuple[str, str, str, int | None]:
    return result.benchmark, result.category, result.task, result.length


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


def _over_lengths(model: str, category: str, task: str, scores: dict[int, Interval]) -> OverLengths:
    means = {length: interval.mean for length, interval in scores.items()}
    return OverLengths(
        model,
        category,
        task,
        scores,
        drop(scores) if len(scores) > 1 else None,
        effective_length(means, share_of_shortest(means)),
        effective_length(means),
    )
