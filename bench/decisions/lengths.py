"""The effective length and the lengths that are possible beside it.

The true effective length is 8k: the score there is at least 85 % of that at 4k, and at longer lengths it is less.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import fmean

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.results.statistics.intervals import (
    effective_length,
    mean_interval,
    possible_lengths,
    share_of_shortest,
)

LENGTHS = (4, 8, 16, 32)
"""In thousands of tokens."""

TRUTH = 8

CURVES = {
    "83 % of it at 16k": (1.0, 0.83, 0.8),
    "84 % of it from 16k": (0.86, 0.84, 0.84),
    "70 % of it at 16k": (0.95, 0.7, 0.5),
}
"""Scores at 8k, 16k and 32k as parts of that at 4k. The threshold is 85 %."""

SCORES = (0.5, 0.8, 0.98)

SAMPLES = (30, 100)


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often the true effective length is among the possible ones."""
    random = np.random.default_rng(seed)
    for score, (name, curve), questions in product(SCORES, CURVES.items(), SAMPLES):
        chances = dict(
            zip(LENGTHS, (score, *(part * score for part in curve)), strict=True)
        )
        is_possible = []
        is_too_long = []
        sizes = []
        for _ in range(rounds):
            intervals = {
                length: mean_interval((random.random(questions) < chance).astype(float))
                for length, chance in chances.items()
            }
            means = {length: interval.mean for length, interval in intervals.items()}
            if not means[LENGTHS[0]]:
                continue
            possible = possible_lengths(intervals)
            is_possible.append(TRUTH in possible)
            sizes.append(len(possible))
            is_too_long.append(
                (effective_length(means, share_of_shortest(means)) or 0) > TRUTH
            )
        yield figure(
            f"effective length, score {score:g} at 4k, {name}, {questions} questions: the true one is possible",
            "at least 95 %",
            is_possible,
            f"{fmean(sizes):.1f} lengths are possible; the longest sufficient one is too long in"
            f" {fmean(is_too_long):.0%}",
        )
