"""Finds which difference of two models a planned sample can detect, and which sample a wanted difference needs.

A difference is detected if a two-sided test at 5 % finds it in 80 % of cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from helm_longctx.results.statistics.comparison import SIGNIFICANCE
from helm_longctx.results.statistics.reliability import variance_components

POWER = 0.8
"""Probability with which a difference is to be found."""

LARGEST_VARIANCE = 0.25
"""Variance of scores in 0…1 of which half are 0 and half are 1."""

MOST_QUESTIONS = 10_000_000
"""Largest number of questions that is proposed."""


@dataclass(frozen=True)
class Spread:
    """How much the difference of two models varies over questions.

    Args:
        deviation: standard deviation of the difference on one question; for models with different questions, the root
            of the sum of both variances.
        correlation: correlation of the differences in one cluster, 0 to 1.
        is_paired: whether both models answer the same questions.
    """

    deviation: float
    correlation: float
    is_paired: bool


def paired_spread(a: ArrayLike, b: ArrayLike, groups: Sequence[object]) -> Spread:
    """Return the spread of two models' differences on the same questions, from an earlier run.

    Args:
        a, b: shape (n,), n at least 2: the scores of both models, in the same order.
        groups: the group of each question.
    """
    found = variance_components(np.asarray(a, dtype=float) - np.asarray(b, dtype=float), groups)
    return Spread(math.sqrt(found.between + found.within), found.share_between, is_paired=True)


def unpaired_spread(variance: float, correlation: float) -> Spread:
    """Return the spread for two models with different questions.

    Args:
        variance: variance of a model's scores.
        correlation: correlation of the scores in one cluster; 1 if it is not known, which counts a cluster as one
            question.
    """
    return Spread(math.sqrt(2 * variance), correlation, is_paired=False)


def error_of_difference(spread: Spread, questions: int, clusters: int) -> float:
    """Return the standard error of the difference of two means.

    Args:
        questions, clusters: numbers of questions of each model, and of the clusters in which they are.
    """
    design = 1 + (questions / clusters - 1) * spread.correlation
    return spread.deviation * math.sqrt(design / questions)


def detectable_difference(spread: Spread, questions: int, clusters: int, power: float = POWER) -> float:
    """Return the smallest difference of two means that a sample detects; infinite for a single cluster.

    Args:
        questions, clusters: numbers as in `error_of_difference`.
        power: probability with which the difference is to be found, above 0.025 and below 1.
    """
    if clusters < 2:
        return math.inf
    return _noncentrality(_freedom(spread, clusters), power) * error_of_difference(spread, questions, clusters)


def _freedom(spread: Spread, clusters: int) -> int:
    return (clusters - 1) * (1 if spread.is_paired else 2)


def detectable_mean_difference(errors: Sequence[float]) -> float:
    """Return the smallest difference of the unweighted means of independent tasks that a sample detects.

    Args:
        errors: the standard error of the difference in each task; see `error_of_difference`.
    """
    return _noncentrality(math.inf, POWER) * math.hypot(*errors) / len(errors)


def questions_needed(spread: Spread, difference: float, cluster_size: float = 1.0, power: float = POWER) -> int:
    """Return the smallest number of questions of each model with which a difference is detected.

    Args:
        difference: the wanted difference, above 0.
        cluster_size: mean number of questions in a cluster, at least 1.
        power: probability as for `detectable_difference`.

    Returns:
        The number, at most `MOST_QUESTIONS`.
    """

    def is_enough(questions: int) -> bool:
        return detectable_difference(spread, questions, int(questions / cluster_size), power) <= difference

    low, high = 1, 2
    while not is_enough(high) and high < MOST_QUESTIONS:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return min(high, MOST_QUESTIONS)


@lru_cache(maxsize=4096)
def _noncentrality(freedom: float, power: float) -> float:
    """Return the ratio of the difference to its standard error at which a t test has the power."""
    from scipy.optimize import brentq
    from scipy.stats import nct, norm, t

    if freedom > 10_000:
        return float(norm.ppf(1 - SIGNIFICANCE / 2) + norm.ppf(power))
    critical = t.ppf(1 - SIGNIFICANCE / 2, freedom)
    # The test's other side is too improbable to count.
    return float(brentq(lambda ratio: nct.sf(critical, freedom, ratio) - power, 0.001, 8 * critical))
