"""Compares two models on the same instances (effect, test, wins), with Holm's correction for many tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.statistics.intervals import Floats, Interval, cluster_sums, group_codes, t_quantile

PERMUTATIONS = 10_000
"""Number of random sign changes of the permutation test. With up to 13 clusters, all changes are used."""

SIGNIFICANCE = 0.05
"""Two models are tied if the p-value, corrected for the number of tests, is not below this."""

_FEW = 13
_EQUAL = 1e-9
"""Scores that differ by less are equal."""


@dataclass(frozen=True)
class Comparison:
    """One model compared with another on the same instances.

    Args:
        effect: mean of the differences (first minus second) and its interval.
        p_value: the two-sided p-value; 1 if no instance differs, NaN if there is no instance.
        wins, losses, ties: numbers of instances on which the first model is better, worse, equal.
    """

    effect: Interval
    p_value: float
    wins: int
    losses: int
    ties: int


def compare_pairs(a: ArrayLike, b: ArrayLike, groups: Sequence[object] | None = None) -> Comparison:
    """Compare two models by their scores on the same instances.

    The test changes the signs of the clusters' differences at random, which is exact if the models are equally good.
    Changes that give exactly the observed mean count half (mid-p), because otherwise the test would be conservative if
    there are few differences.

    Args:
        a, b: shape (n,): the scores of both models, in the same order.
        groups: the group of each instance; None if all are independent.

    Raises:
        ValueError: the lengths differ.
    """
    differences = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    codes = group_codes(groups, len(differences))
    wins, losses = int((differences > _EQUAL).sum()), int((differences < -_EQUAL).sum())
    sums = cluster_sums(differences, codes)
    effect = _effect(differences, sums)
    return Comparison(effect, _sign_test(sums), wins, losses, len(differences) - wins - losses)


@dataclass(frozen=True)
class Pairs:
    """The scores of two models on the same instances of a part, such as a task.

    Args:
        a, b: shape (n,), with n at least 1: the scores of both, in the same order.
        groups: the group of each instance; parts can share groups.
        weight: the part's share in the whole; the weights of all parts have the sum 1.
    """

    a: ArrayLike
    b: ArrayLike
    groups: Sequence[object]
    weight: float


def compare_parts(parts: Sequence[Pairs]) -> Comparison:
    """Compare two models by the weighted mean of the parts' mean differences; see `compare_pairs`."""
    total = sum(len(part.groups) for part in parts)
    # The factor `total` cancels the division in the plain mean over all instances, which the test uses.
    scales = [total * part.weight / len(part.groups) for part in parts]
    a, b = (
        np.concatenate([scale * np.asarray(scores, dtype=float) for scale, scores in zip(scales, side, strict=True)])
        for side in ([part.a for part in parts], [part.b for part in parts])
    )
    return compare_pairs(a, b, [group for part in parts for group in part.groups])


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that are adjusted for their number by Holm's method (1979), in the same order. NaN stays NaN."""
    values = np.asarray(p_values, dtype=float)
    order = [int(place) for place in np.argsort(values) if not math.isnan(values[place])]
    adjusted, largest = np.full(len(values), math.nan), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, float(values[place]) * (len(order) - rank)))
        adjusted[place] = largest
    return [float(value) for value in adjusted]


def _effect(differences: Floats, sums: Floats) -> Interval:
    """Return the mean difference with Student's interval over clusters.

    Two clusters are added, one of each sign and of the size of those that differ, so that the interval has a width even
    if few clusters or none differ. For differences of 0 and ±1 these are the pseudo-observations of Bonett and Price
    (2012).
    """
    n, clusters = len(differences), len(sums)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(differences.mean())
    squares = sums**2
    fourth = float((squares**2).sum())
    # This is the mean square, weighted by the squares themselves, so that clusters without a difference do not count.
    # If no cluster differs, it is that of a cluster of mean size that differs in all its instances.
    typical = fourth / float(squares.sum()) if fourth > _EQUAL else (n / clusters) ** 2
    centred = float(((sums - n / clusters * mean) ** 2).sum())
    # `(k + 2) / (k + 1)` is the usual correction k / (k - 1) for k + 2 clusters: those at hand and the two that were
    # added.
    error = math.sqrt((centred + 2 * typical) * (clusters + 2) / (clusters + 1)) / n
    half = t_quantile(clusters + 1) * error
    return Interval(mean, max(-1.0, mean - half), min(1.0, mean + half), n)


def _sign_test(sums: Floats) -> float:
    """Return the two-sided p-value of the permutation test on clusters' sums of differences."""
    # Clusters without a difference have the same sum with any sign, so they are omitted.
    sums = sums[np.abs(sums) > _EQUAL]
    if not sums.size:
        return 1.0
    totals = np.abs(_signs(len(sums)) @ sums.astype(np.float32))
    observed = abs(float(sums.sum()))
    # The product is in single precision, which needs half the memory and has errors of about 1e-7 of the terms.
    margin = 1e-5 * float(np.abs(sums).sum())
    beyond = float((totals > observed + margin).mean())
    equal = float((np.abs(totals - observed) <= margin).mean())
    # A random sample of n changes cannot show a p-value below 1 / n.
    smallest = 0.0 if len(sums) <= _FEW else 1 / PERMUTATIONS
    return min(1.0, max(beyond + equal / 2, smallest))


def _signs(clusters: int) -> NDArray[np.float32]:
    """Return all signs of few clusters, or random ones: shape (changes, clusters)."""
    if clusters <= _FEW:
        return _all_signs(clusters)
    # The number of columns is a power of two, so that a few cached tables are enough for all numbers of clusters.
    return _random_signs(1 << (clusters - 1).bit_length())[:, :clusters]


@lru_cache(maxsize=_FEW)
def _all_signs(clusters: int) -> NDArray[np.float32]:
    # Row r has the binary digits of r: every combination of signs once.
    bits = np.arange(1 << clusters)[:, None] >> np.arange(clusters) & 1
    return (2 * bits - 1).astype(np.float32)


@lru_cache(maxsize=4)
def _random_signs(columns: int) -> NDArray[np.float32]:
    """Return the same signs for every test, so that a result can be repeated."""
    random = np.random.default_rng(0)
    return random.integers(0, 2, (PERMUTATIONS, columns), dtype=np.int8).astype(np.float32) * 2 - 1
