"""95 % intervals of means: over questions, over clusters of questions, and of means of means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""Confidence level of all intervals."""

Floats = NDArray[np.float64]

_PRIOR_RATIO, _PRIOR_DEFF = 0.25, 0.55
"""Number of observations by which the estimates of variance and of the design effect are shrunk to their largest value.
With these values the coverage is 93 to 97 %, also if few values differ, as `bench/intervals.py` simulates."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval.

    Args:
        mean: the mean; NaN if there is no value.
        low, high: the ends; NaN for a single value without known bounds.
        n: number of values.
    """

    mean: float
    low: float
    high: float
    n: int


def mean_interval(values: ArrayLike, groups: Sequence[object] | None = None) -> Interval:
    """Return the mean of scores and its interval.

    For scores in 0…1 it is Wilson's score interval with the effective sample size, which stays in 0…1 and has a width
    even if all scores are equal. For other values it is Student's interval. Values of the same group are one cluster.

    Args:
        values: shape (n,), in any order.
        groups: the group of each value, such as its question or its book; None if all values are independent.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    scores = np.asarray(values, dtype=float)
    codes = group_codes(groups, len(scores))
    if not scores.size:
        return Interval(math.nan, math.nan, math.nan, 0)
    # Wilson's interval is for proportions. It also holds for scores in 0…1, which vary no more than right and wrong
    # answers.
    if scores.min() < 0 or scores.max() > 1:
        return _student_interval(scores, codes)
    mean = float(scores.mean())
    # The variance of right and wrong answers follows from their mean. That of other scores is estimated, so Student's
    # quantile is used.
    is_binary = bool(np.isin(scores, (0, 1)).all())
    quantile = normal_quantile() if is_binary else t_quantile(len(scores) - 1)
    low, high = wilson(mean, _effective_size(scores, codes), quantile)
    return Interval(mean, low, high, len(scores))


def standard_error(values: ArrayLike, groups: Sequence[object] | None = None) -> float:
    """Return the standard error of a mean, clustered by group; NaN if there is one cluster.

    Args:
        values: shape (n,), in any order.
        groups: the groups, as for `mean_interval`.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    scores = np.asarray(values, dtype=float)
    return _clustered_error(scores, group_codes(groups, len(scores))) if scores.size else math.nan


def mean_of_means(intervals: Sequence[Interval]) -> Interval:
    """Return the unweighted mean of independent means, such as those of a category's tasks.

    The distances from the means to the ends are combined like standard errors, separately for each side (the method of
    variance estimates recovery, Zou and Donner 2008), so that skewed intervals give a skewed one.
    """
    if not intervals:
        return Interval(math.nan, math.nan, math.nan, 0)
    rows = np.array([(each.mean, each.low, each.high) for each in intervals])
    mean = float(rows[:, 0].mean())
    below, above = (float(np.linalg.norm(rows[:, 0] - rows[:, end])) / len(rows) for end in (1, 2))
    return Interval(mean, mean - below, mean + above, sum(each.n for each in intervals))


def group_codes(groups: Sequence[object] | None, size: int) -> NDArray[np.intp]:
    """Number the groups from 0. Without groups, each of the `size` values is a group.

    Raises:
        ValueError: there are more or fewer groups than values.
    """
    if groups is None:
        return np.arange(size)
    if len(groups) != size:
        raise ValueError(f"{len(groups)} groups for {size} values")
    # NumPy's `unique` would sort the groups, but groups of different types have no order.
    numbers: dict[object, int] = {}
    return np.fromiter((numbers.setdefault(group, len(numbers)) for group in groups), np.intp, size)


def cluster_sums(values: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return the sum of each cluster's values."""
    return np.bincount(codes, values).astype(float)


@lru_cache(maxsize=4096)
def t_quantile(freedom: int) -> float:
    """Return the quantile of Student's distribution for a two-sided interval.

    Without degrees of freedom it is that of the normal distribution.
    """
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom)) if freedom > 0 else normal_quantile()


@lru_cache(maxsize=1)
def normal_quantile() -> float:
    """Return the quantile of the normal distribution for a two-sided interval: 1.96."""
    from scipy.special import ndtri

    return float(ndtri((1 + LEVEL) / 2))


def wilson(mean: float, size: float, quantile: float) -> tuple[float, float]:
    """Return the ends of Wilson's score interval (1927) of a proportion.

    Args:
        mean: the proportion, 0 to 1.
        size: number of independent values; it need not be whole.
        quantile: the quantile of the normal distribution or of Student's distribution.
    """
    weight = quantile**2 / size
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * (mean * (1 - mean) + weight / 4)) / (1 + weight)
    # Rounding can put an end on the wrong side of a mean of 0 or 1.
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _effective_size(scores: Floats, codes: NDArray[np.intp]) -> float:
    """Return the number of independent answers, each right or wrong, whose mean varies as much as that of the scores.

    It is the number of scores, divided by the ratio of their variance to p (1 - p) and by the design effect of the
    clusters. Both are estimates. The fewer scores or clusters differ from the mean, the more the estimates are shrunk
    to their largest values: 1, and the size of the clusters.
    """
    errors = scores - scores.mean()
    squares = float((errors**2).sum())
    whole = float(scores.mean() * (1 - scores.mean())) * len(scores)
    ratio = _shrink(squares, whole, 1.0, _informative(errors), _PRIOR_RATIO)
    sizes = np.bincount(codes)
    clusters = len(sizes)
    if clusters == len(scores):
        return len(scores) / ratio
    sums = cluster_sums(errors, codes)
    # The correction for the mean that was estimated from the same clusters.
    between = float((sums**2).sum()) * clusters / max(clusters - 1, 1)
    # The design effect of clusters in which all scores are equal: the mean size of the cluster of a score.
    largest = float((sizes**2).sum()) / len(scores)
    design = _shrink(between, squares, largest, _informative(sums), _PRIOR_DEFF)
    return len(scores) / (ratio * design)


def _shrink(part: float, whole: float, largest: float, weight: float, prior: float) -> float:
    """Return `part / whole`, a ratio from `weight` observations, shrunk to `largest` by `prior` observations."""
    ratio = part / whole if whole > 1e-12 else 0.0
    return (weight * ratio + prior * largest) / (weight + prior)


def _informative(errors: Floats) -> float:
    """Return the effective number of errors behind an estimate of their variance: few, if only few are large."""
    squares = errors**2
    fourth = float((squares**2).sum())
    return float(squares.sum()) ** 2 / fourth if fourth > 1e-24 else 0.0


def _student_interval(values: Floats, codes: NDArray[np.intp]) -> Interval:
    mean = float(values.mean())
    half = t_quantile(int(codes.max())) * _clustered_error(values, codes)
    return Interval(mean, mean - half, mean + half, len(values))


def _clustered_error(values: Floats, codes: NDArray[np.intp]) -> float:
    sums = cluster_sums(values - values.mean(), codes)
    clusters = len(sums)
    if clusters < 2:
        return math.nan
    # The mean over clusters of different sizes is a ratio of sums, and this is the error of such a ratio.
    return math.sqrt(float((sums**2).sum()) * clusters / (clusters - 1)) / len(values)
