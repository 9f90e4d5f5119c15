"""Recipes compared by several training runs of each: coverage of intervals, and errors of verdicts.

All runs answer the same 100 questions. Both recipes are equally good, so an interval without 0 is an error. The true
standard deviation between runs is 0, 1, 2, 6 or 12 points. "Questions alone" is the paired comparison of one run of each,
which knows nothing of runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.results.statistics.comparison import compare_pairs
from helm_longctx.results.statistics.run_noise import compare_recipes, estimate_noise

QUESTIONS = 100

RUNS = ((1, 1), (1, 2), (2, 2), (3, 3), (5, 5), (8, 8), (2, 5), (1, 4), (1, 6))
"""Runs of both recipes. A recipe with one run has the noise of the other, as an assumption."""

NOISE = (0.0, 0.01, 0.02, 0.06, 0.12)


def draw(
    random: np.random.Generator,
    runs: int,
    questions: np.ndarray,
    noise: float,
    binary: bool,
) -> np.ndarray:
    """Return the scores of the runs of a recipe, shape (runs, questions)."""
    means = questions + random.normal(0, noise, (runs, 1))
    if binary:
        return (random.random(means.shape) < np.clip(means, 0.02, 0.98)).astype(float)
    return means + random.normal(0, 0.1, means.shape)


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield for each number of runs and kind of score the noise whose intervals cover the truth least often."""
    for number, (first, second) in enumerate(RUNS):
        for binary in (False, True):
            random = np.random.default_rng([seed, number, binary])
            cells = [
                simulate(random, first, second, noise, binary, rounds)
                for noise in NOISE
            ]
            kind = "right or wrong" if binary else "continuous"
            case = f"{first} and {second} runs, {kind}, noise 0, 1, 2, 6, 12 points"
            claim = "at least 93 % covered"
            if first == second == 1:
                case = f"questions alone: {case}"
                claim = "none: the verdict is “cannot tell”"
            shares = ", ".join(f"{100 * covered.mean():.1f}" for covered, _ in cells)
            widths = ", ".join(f"{width:.0f}" for _, width in cells)
            least = min((covered for covered, _ in cells), key=np.mean)
            yield figure(case, claim, least, f"{shares} %; widths {widths} points")


def simulate(
    random: np.random.Generator,
    first: int,
    second: int,
    noise: float,
    binary: bool,
    rounds: int,
) -> tuple[np.ndarray, float]:
    """Return whether the interval of each round covers 0, and the median width of the intervals in points."""
    weights = np.full(QUESTIONS, 1 / QUESTIONS)
    codes = np.arange(QUESTIONS)
    lows = []
    highs = []
    for _ in range(rounds):
        level = 0.6 + random.normal(0, 0.25, QUESTIONS)
        one = draw(random, first, level, noise, binary)
        other = draw(random, second, level, noise, binary)
        if first == second == 1:
            effect = compare_pairs(one[0], other[0]).effect
            ends = (effect.low, effect.high)
        else:
            estimate = estimate_noise([one, other], weights, codes)
            compared = compare_recipes(one, other, weights, codes, estimate)
            ends = (compared.low, compared.high)
        lows.append(ends[0])
        highs.append(ends[1])
    covered = (np.array(lows) <= 0) & (np.array(highs) >= 0)
    width = 100 * float(np.median(np.array(highs) - np.array(lows)))
    return covered, width
