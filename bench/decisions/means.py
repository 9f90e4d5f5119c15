"""The intervals of means of means: how often they contain the true mean.

All tasks have the same share of right answers: 50, 80, 90, 95, 98, 99, 99.5 or 99.9 %. In two more cells they rise from
95 % in the first task to 99.5 % in the last, and fall. "Before" combined the distances to the ends like standard errors
(Zou and Donner 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from bench.decisions.figures import Figure, share_figure
from tests.support.simulations import NESTED, SIZES, coverage_of_means

from helm_longctx.results.statistics.intervals import Interval, mean_of_means

Combine = Callable[[Sequence[Interval]], Interval]

CHANCES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Shares of right answers of all tasks."""

UNEQUAL = ((0.95, 0.995), (0.995, 0.95))
"""The shares of the first and of the last task, between which they rise or fall."""

OF_NOTE = 8
"""The other rule has so many times fewer rounds, because it stands in a note only."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield for each shape the lowest coverage of all shares of right answers."""
    shapes: dict[str, Sequence[Sequence[int]]] = {}
    for name, sizes in SIZES.items():
        shapes[name] = [sizes]
    shapes |= NESTED
    for name, shape in shapes.items():
        now = cover(shape, rounds, seed, mean_of_means)
        by_ends = cover(shape, max(rounds // OF_NOTE, 1), seed, combine_ends)
        yield share_figure(
            f"mean of means, {name}, 50 to 99.9 % right: the lowest share of right intervals",
            "at least 93 %",
            min(now),
            rounds,
            f"of {format_shares(now)}; by the ends {format_shares(by_ends)}",
        )


def cover(
    sizes: Sequence[Sequence[int]], rounds: int, seed: int, combine: Combine
) -> list[float]:
    """Return the coverage for each share of right answers, and for unequal ones."""
    random = np.random.default_rng(seed)
    tasks = sum(map(len, sizes))
    cells = [np.full(tasks, chance) for chance in CHANCES]
    for first, last in UNEQUAL:
        cells.append(np.linspace(first, last, tasks))
    return [
        coverage_of_means(sizes, chances, rounds, random, combine) for chances in cells
    ]


def format_shares(shares: Sequence[float]) -> str:
    """Format shares as a list of percents."""
    return f"{', '.join(f'{100 * share:.1f}' for share in shares)} %"


def combine_ends(intervals: Sequence[Interval]) -> Interval:
    """Return a mean of means by the distances to the ends of their intervals (Zou and Donner 2008)."""
    mean = sum(interval.mean for interval in intervals) / len(intervals)
    below = math.hypot(*(interval.mean - interval.low for interval in intervals)) / len(
        intervals
    )
    above = math.hypot(
        *(interval.high - interval.mean for interval in intervals)
    ) / len(intervals)
    return Interval(
        mean, mean - below, mean + above, sum(interval.n for interval in intervals)
    )
