"""The power of `estimate`, whose plans promise 80 %.

A line has the difference that the plan names, and how often the comparison of two models finds it: `compare_intervals`
for other questions, and `compare_pairs` for the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from bench.decisions.figures import Figure, share_figure
from tests.support.simulations import (
    SKEWED_SIZES,
    Power,
    Task,
    find_power,
    power_of_means,
    power_of_pairs,
)

from helm_longctx.results.statistics.power import PairedQuestions, detectable_difference
from helm_longctx.runner.estimate import TaskSample
from helm_longctx.runner.planning import find_spreads

SHAPES = {
    "50 questions": [1] * 50,
    "100 questions": [1] * 100,
    "500 questions": [1] * 500,
    "20 clusters of 6": [6] * 20,
    "50 clusters of 4": [4] * 50,
    "50 clusters, 10 of 20 and 40 of 2": [20] * 10 + [2] * 40,
}
"""Sizes of the clusters of a task."""

TASKS = {
    "4 of 100": [[1] * 100] * 4,
    "13 of 10 to 500": [[1] * size for size in SKEWED_SIZES],
    "5 of 20 clusters of 6": [[6] * 20] * 5,
}
"""The same for each of several tasks."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield figures for the same questions, and for other questions."""
    random = np.random.default_rng(seed)
    yield from compare_same_questions(rounds, random)
    yield from compare_other_questions(rounds, random)


def compare_other_questions(
    rounds: int, random: np.random.Generator
) -> Iterator[Figure]:
    """Yield how often the difference is found that a plan names for models with other questions."""
    for (name, sizes), mean in product(SHAPES.items(), (0.5, 0.7, 0.9, 0.98)):
        for correlation in (0.0, 0.3, 0.9) if max(sizes) > 1 else (0.0,):
            power = power_of_means([Task(sizes, correlation)], mean, rounds, random)
            clusters = f", correlation {correlation:g}" if max(sizes) > 1 else ""
            yield from describe(f"{name}{clusters}", mean, power, rounds)
    for (name, tasks), mean in product(TASKS.items(), (0.5, 0.9, 0.98)):
        shapes = [Task(task, 0.0) for task in tasks]
        power = power_of_means(shapes, mean, rounds, random)
        yield from describe(f"mean of tasks, {name}", mean, power, rounds)
    planned = TaskSample("helmet_recall", "json_kv", 8192, 100, 100)
    spread = find_spreads(planned, {}).unpaired
    difference = detectable_difference([PairedQuestions(spread, 100, 100)])
    for mean in (0.5, 0.8, 0.95):
        power = find_power(difference, [Task([1] * 100, 0.0)], mean, rounds, random)
        name = "100 of json_kv at 8k, by HELMET's published scores"
        yield from describe(name, mean, power, rounds)


def describe(name: str, mean: float, power: Power, rounds: int) -> Iterator[Figure]:
    """Yield the figure of models with other questions; nothing if there can be no such models.

    Args:
        mean: the share of right answers of the better model.
    """
    if not math.isnan(power.share):
        yield share_figure(
            f"`estimate`, other questions, {name}, {mean:.0%} right: the named"
            " difference is found",
            "at least 80 %",
            power.share,
            rounds,
            f"{100 * power.difference:.1f} points",
        )


def compare_same_questions(
    rounds: int, random: np.random.Generator
) -> Iterator[Figure]:
    """Yield how often the difference is found that a plan names for the same questions."""
    for (name, sizes), differ in product(SHAPES.items(), (0.1, 0.3, 0.5)):
        for correlation in (0.0, 0.3) if max(sizes) > 1 else (0.0,):
            power = power_of_pairs(Task(sizes, correlation), differ, rounds, random)
            if math.isnan(power.share):
                continue
            clusters = f", correlation {correlation:g}" if max(sizes) > 1 else ""
            yield share_figure(
                f"`estimate`, same questions, {name}{clusters}, {differ:.0%} answered differently:"
                " the named difference is found",
                "at least 80 %",
                power.share,
                rounds,
                f"{100 * power.difference:.1f} points",
            )
