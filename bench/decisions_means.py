"""The intervals of means of means: how often they contain the true mean; see `decisions.py`.

"Before" combined the distances to the ends like standard errors (Zou and Donner 2008).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.simulations import NESTED, SIZES, coverage_of_means

from helm_longctx.results.statistics.intervals import Interval, mean_of_means

CHANCES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"tasks; share of right answers of all tasks {', '.join(f'{each:g}' for each in CHANCES)}, from 0.95 in the"
    yield "  first task to 0.995 in the last, and reversed: intervals with the true mean before; now"
    shapes: dict[str, Sequence[Sequence[int]]] = {
        name: [sizes] for name, sizes in SIZES.items()
    } | NESTED
    for name, sizes in shapes.items():
        tasks = sum(map(len, sizes))
        cells = [np.full(tasks, chance) for chance in CHANCES]
        cells += [np.linspace(0.95, 0.995, tasks), np.linspace(0.995, 0.95, tasks)]
        for rule, combine in (("before", combine_ends), ("now", mean_of_means)):
            random = np.random.default_rng(seed)
            found = [
                coverage_of_means(sizes, chances, rounds, random, combine)
                for chances in cells
            ]
            yield f"{name}, {rule}: {', '.join(f'{share:.1%}' for share in found)}"


def combine_ends(intervals: Sequence[Interval]) -> Interval:
    """Return a mean of means by the rule of before."""
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
