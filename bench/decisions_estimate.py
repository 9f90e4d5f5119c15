"""The power of `estimate`, by simulated comparisons of two models with the difference that it promises to detect.

The planned power is 80 %. A figure is the simulated power: how often `compare_intervals` (other questions) or
`compare_pairs` (same questions) calls the models different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.comparison import compare_intervals, compare_pairs
from helm_longctx.results.statistics.intervals import Interval, mean_interval, mean_of_means
from helm_longctx.results.statistics.power import Sample, Spread, detectable_difference
from helm_longctx.runner.estimate import TaskSample
from helm_longctx.runner.planning import find_spreads

Scores = NDArray[np.float64]

SHAPES = {
    "50 questions": [1] * 50,
    "100 questions": [1] * 100,
    "500 questions": [1] * 500,
    "20 clusters of 6": [6] * 20,
    "50 clusters of 4": [4] * 50,
    "50 clusters, 10 of 20 and 40 of 2": [20] * 10 + [2] * 40,
}
"""Sizes of the clusters of a task."""


class Task(NamedTuple):
    """A task of two models with other questions: the sizes of the clusters, and the correlation in them."""

    sizes: list[int]
    correlation: float

    def sample(self, variance: float, is_paired: bool = False) -> Sample:
        """Return what `estimate` knows of the task."""
        questions = sum(self.sizes)
        clusters = questions**2 / sum(size**2 for size in self.sizes)
        return Sample(Spread(variance, self.correlation, is_paired), questions, clusters)

    def draw(self, random: np.random.Generator, draw: Callable[[int], Scores]) -> Scores:
        """Return scores in the order of their clusters.

        Args:
            draw: draws independent scores.
        """
        of_cluster, own = np.repeat(draw(len(self.sizes)), self.sizes), draw(sum(self.sizes))
        return np.where(random.random(len(own)) < np.sqrt(self.correlation), of_cluster, own)

    @property
    def groups(self) -> list[int] | None:
        """Return the cluster of each score; None if all are independent."""
        return None if max(self.sizes) == 1 else np.repeat(range(len(self.sizes)), self.sizes).tolist()


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield the lines of all tables."""
    random = np.random.default_rng(seed)
    yield "other questions: correlation in clusters, better model: detected difference; simulated power"
    for shape, sizes in SHAPES.items():
        for correlation, mean in product((0.0, 0.3, 0.9) if max(sizes) > 1 else (0.0,), (0.5, 0.7, 0.9, 0.98)):
            yield f"{shape}, {correlation:g}, {mean:g}: " + one_task(Task(sizes, correlation), mean, rounds, random)
    yield "mean of tasks, other questions: tasks, better model: detected difference; simulated power"
    for (name, sizes), mean in product(TASKS.items(), (0.5, 0.9, 0.98)):
        yield f"{name}, {mean:g}: " + several_tasks([Task(each, 0.0) for each in sizes], mean, rounds, random)
    yield "published scores (HELMET Recall, json_kv, 100 questions), other questions: better model: detected; power"
    for mean in (0.5, 0.8, 0.95):
        yield f"{mean:g}: " + published(mean, rounds, random)
    yield "same questions: shape, correlation, share of questions with different answers: detected; simulated power"
    for shape, sizes in SHAPES.items():
        for correlation, differ in product((0.0, 0.3) if max(sizes) > 1 else (0.0,), (0.1, 0.3, 0.5)):
            yield f"{shape}, {correlation:g}, {differ:g}: " + paired(Task(sizes, correlation), differ, rounds, random)


TASKS = {
    "4 of 100": [[1] * 100] * 4,
    "13 of 10 to 500": [[1] * n for n in (10, 14, 19, 26, 36, 50, 70, 97, 135, 188, 260, 360, 500)],
    "5 of 20 clusters of 6": [[6] * 20] * 5,
}


def one_task(task: Task, mean: float, rounds: int, random: np.random.Generator) -> str:
    """Return the detected difference of two models with right and wrong answers, and the simulated power."""
    return several_tasks([task], mean, rounds, random)


def several_tasks(tasks: list[Task], mean: float, rounds: int, random: np.random.Generator) -> str:
    """Return the same for the mean over tasks."""
    found = detectable_difference([task.sample(mean * (1 - mean)) for task in tasks])
    return describe(found, mean, lambda chance: interval_of(tasks, chance, random), rounds)


def interval_of(tasks: list[Task], chance: float, random: np.random.Generator) -> Interval:
    """Return the interval of a model with this share of right answers."""
    drawn = [task.draw(random, lambda n: (random.random(n) < chance).astype(float)) for task in tasks]
    return mean_of_means([mean_interval(scores, task.groups) for scores, task in zip(drawn, tasks, strict=True)])


def describe(found: float, mean: float, interval: Callable[[float], Interval], rounds: int) -> str:
    """Return a difference, and how often it is found; the worse model is worse by it."""
    mean = max(mean, found) if mean == 0.5 else mean
    if not 0 <= mean - found <= mean <= 1:
        return f"{100 * found:.1f} points; not possible"
    hits = sum(compare_intervals(interval(mean), interval(mean - found)).p_value < 0.05 for _ in range(rounds))
    return f"{100 * found:.1f} points; {hits / rounds:.0%}"


def published(mean: float, rounds: int, random: np.random.Generator) -> str:
    """Return the same for a task of which only scores are published."""
    spread = find_spreads(TaskSample("helmet_recall", "json_kv", 8192, 100, 100), {}).unpaired
    found = detectable_difference([Sample(spread, 100, 100)])
    return describe(found, mean, lambda chance: interval_of([Task([1] * 100, 0.0)], chance, random), rounds)


def paired(task: Task, differ: float, rounds: int, random: np.random.Generator) -> str:
    """Return the same for models with the same questions, whose answers differ in a share of them."""
    found = detectable_difference([task.sample(differ, is_paired=True)])
    if found > differ:
        return f"{100 * found:.1f} points; not possible"
    shares = [(differ + found) / 2, (differ - found) / 2, 1 - differ]
    hits = 0
    for _ in range(rounds):
        drawn = task.draw(random, lambda n: random.choice([1.0, -1.0, 0.0], n, p=shares))
        hits += compare_pairs(drawn, np.zeros(len(drawn)), task.groups).p_value < 0.05
    return f"{100 * found:.1f} points; {hits / rounds:.0%}"
