"""Intervals over runs and questions cover the truth, and say what would decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helm_longctx.results.statistics.run_noise import (
    RecipeComparison,
    assume_noise,
    compare_recipes,
    estimate_noise,
)

QUESTIONS = 60
WEIGHTS = np.full(QUESTIONS, 1 / QUESTIONS)
CODES = np.arange(QUESTIONS)


def compare(
    random: np.random.Generator, runs: tuple[int, int], noise: float, gap: float = 0.0
) -> RecipeComparison:
    """Compare two recipes whose runs have right and wrong answers to the same questions."""
    level = 0.6 + random.normal(0, 0.25, QUESTIONS)
    recipes = []
    for count, shift in zip(runs, (gap, 0.0), strict=True):
        means = level + shift + random.normal(0, noise, (count, 1))
        right = random.random(means.shape) < np.clip(means, 0.02, 0.98)
        recipes.append(right.astype(float))
    estimate = estimate_noise(recipes, WEIGHTS, CODES)
    return compare_recipes(recipes[0], recipes[1], WEIGHTS, CODES, estimate)


@pytest.mark.parametrize("noise", [0.0, 0.06, 0.12])
@pytest.mark.parametrize("runs", [(1, 2), (2, 2), (2, 5), (5, 5)])
def test_intervals_cover_the_truth(runs: tuple[int, int], noise: float) -> None:
    """Intervals of equal recipes contain 0 in nearly all rounds, also with a single degree of freedom."""
    random = np.random.default_rng([*runs, round(100 * noise)])
    covered = 0
    for _ in range(150):
        compared = compare(random, runs, noise)
        assert (compared.low <= 0 <= compared.high) == (compared.p_value >= 0.05)
        covered += compared.low <= 0 <= compared.high
    assert covered >= 132


def test_runs_alone_must_decide_with_one_degree_of_freedom() -> None:
    """Two runs of one recipe and one of the other decide only what runs alone would decide."""
    one = np.full((2, QUESTIONS), 0.5)
    one[1] += 0.02
    other = np.full((1, QUESTIONS), 0.1)
    estimate = estimate_noise([one, other], WEIGHTS, CODES)
    assert estimate is not None
    assert estimate.freedom == 1
    compared = compare_recipes(one, other, WEIGHTS, CODES, estimate)
    quantile_of_one = 12.706
    half = quantile_of_one * estimate.deviation * math.sqrt(1.5)
    assert (compared.high - compared.low) / 2 == pytest.approx(half, rel=1e-4)


def test_what_would_decide() -> None:
    """A difference that is not decided names runs or questions that would, and a decided one needs nothing."""
    random = np.random.default_rng(5)
    compared = compare(random, (3, 3), 0.06, gap=0.1)
    assert compared.low < 0 < compared.high
    assert compared.needed_runs is not None
    assert compared.needed_runs > 3
    assert compared.smallest > (compared.high - compared.low) / 2
    decided = compare(random, (8, 8), 0.01, gap=0.3)
    assert decided.low > 0
    assert decided.needed_runs is None
    assert decided.needed_questions is None


def test_an_assumption_is_certain() -> None:
    """Assumed noise has no degrees of freedom to lose, so its interval is narrower than that of an estimate."""
    random = np.random.default_rng(6)
    scores = [
        (random.random((2, QUESTIONS)) < 0.5 + random.normal(0, 0.1, (2, 1))).astype(
            float
        )
        for _ in range(2)
    ]
    estimate = estimate_noise(scores, WEIGHTS, CODES)
    assert estimate is not None
    estimated = compare_recipes(scores[0], scores[1], WEIGHTS, CODES, estimate)
    assumed = compare_recipes(
        scores[0], scores[1], WEIGHTS, CODES, assume_noise(estimate.deviation)
    )
    assert assumed.high - assumed.low < estimated.high - estimated.low
