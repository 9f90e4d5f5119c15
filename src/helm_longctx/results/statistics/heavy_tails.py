"""Bounds of a mean that hold for rare and skewed values, such as divergences of which a few are large.

Student's bound of a mean is too low if most values are small and few are large: eight questions of which a tenth
diverges show no large value in 43 % of samples. `upper_bound` is the larger one of two bounds:

- Each value counts as at most a cap, and a player bets against "the mean is m" (Waudby-Smith and Ramdas 2023, arXiv
  2010.09686). This is exact for every distribution, and at all looks together. Of values whose mean is shown to be
  below cap / k, less than 1 / k can be at the cap.
- The positive values are taken as lognormal (Zou, Taleban and Huo 2009, MOVER), because a cap hides how far a long
  tail goes. This holds for lognormal values, at all looks if the level is that of the look.

`lower_bound` bets that the mean is larger. Student's lower bound is too high if few values are small: of eight
questions, of which nine tenths diverge by a little more than the margin and the others not at all, 43 % of samples show
only equal values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.intervals import Floats

_STAKES = np.append(np.sin(np.pi * np.arange(1, 20) / 40) ** 2, 1.0)
"""Shares of the largest possible stake, from the arcsine distribution and 1."""

_WEIGHTS = np.append(np.full(19, 0.5 / 19), 0.5)
"""The part of the wealth of each stake. Half of it is for the largest one, so that few questions without any
divergence are enough."""

_FLOOR = 0.001
"""A value that is smaller than this share of the margin counts as none."""

_FEWEST_POSITIVE = 8
"""With fewer positive values, their distribution is not known, and only the first bound counts."""

_BISECTIONS = 24


def upper_bound(
    values: Floats,
    margin: float,
    cap: float,
    error: float,
    level: float,
) -> float:
    """Return the upper bound of a mean. It is below the margin only if the mean is.

    Args:
        values: shape (n,): independent values, of any sign.
        margin: the compared mean, above 0.
        cap: larger values count as this one; above the margin.
        error: the one-sided error of the bound by bets, over all looks.
        level: the one-sided level of the lognormal bound at this look; see `comparison.level_of_look`.

    Returns:
        The bound. It is the cap for no values, and at a level of 0.
    """
    if not len(values) or not level:
        return cap
    # A single gain must not outweigh many losses, so no value counts as less than minus the cap.
    capped = np.clip(values, -cap, cap)
    return max(
        _bound_by_bets(capped, cap, error), _bound_lognormal(values, margin, level)
    )


def lower_bound(values: Floats, floor: float, error: float) -> float:
    """Return the lower bound of a mean, exact for every distribution without smaller values than `-floor`.

    It holds at all looks together. Large values need no bound.

    Args:
        values: shape (n,): independent values.
        floor: smaller values than minus this one count as that.
        error: the one-sided error, over all looks.

    Returns:
        The bound; `-floor` for no values.
    """
    if not len(values):
        return -floor
    return -_bound_by_bets(np.minimum(-values, floor), floor, error)


def are_above(
    values: Floats,
    margin: float,
    floor: float,
    error: float,
) -> NDArray[np.bool_]:
    """Return which samples have a `lower_bound` above a margin, much faster.

    Args:
        values: shape (samples, n), none below `-floor`.
        margin: the compared mean.
    """
    stakes = _STAKES[:, None, None] / (margin + floor)
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.maximum(1 + stakes * (values - margin), 0.0)).sum(axis=2)
    wealth = _WEIGHTS @ np.exp(np.minimum(logarithms, 700.0))
    return np.asarray(wealth * error > 1)


def fewest_values(margin: float, cap: float, error: float) -> int:
    """Return how many values are enough to show that the mean is below the margin if all of them are 0."""
    factors = 1 + _STAKES * margin / (cap - margin)
    count = 1
    while float(_WEIGHTS @ factors**count) * error < 1:
        count += 1
    return count


def _bound_by_bets(values: Floats, cap: float, error: float) -> float:
    """Return the smallest mean that the bets reject, or the cap if they reject none.

    Args:
        values: shape (n,), at most the cap.
    """
    low = float(values.mean())
    high = cap
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _wealth(values, middle, cap) * error >= 1:
            high = middle
        else:
            low = middle
    return high


def _wealth(values: Floats, mean: float, cap: float) -> float:
    """Return the wealth of a player who bets that the true mean is below a mean.

    Each value multiplies it by 1 + stake x (mean - value). It never grows on average if the true mean is not smaller.
    """
    if mean >= cap:
        return math.inf
    stakes = _STAKES / (cap - mean)
    kinds, counts = np.unique(values, return_counts=True)
    factors = np.maximum(1 + stakes[:, None] * (mean - kinds), 0.0)
    with np.errstate(divide="ignore"):
        logarithms = np.log(factors) @ counts
    return float(_WEIGHTS @ np.exp(np.minimum(logarithms, 700.0)))


def _bound_lognormal(values: Floats, margin: float, level: float) -> float:
    """Return the upper bound of the mean if positive values are lognormal; 0 if there are too few of them."""
    from scipy.special import chdtri, ndtri

    positive = values[values > _FLOOR * margin]
    count = len(positive)
    if count < _FEWEST_POSITIVE:
        return 0.0
    logarithms = np.log(positive)
    variance = float(logarithms.var(ddof=1))
    # `chdtri` takes the probability of the upper tail.
    largest = variance * (count - 1) / float(chdtri(count - 1, 1 - level))
    mean_part = float(ndtri(level)) ** 2 * variance / count
    variance_part = ((largest - variance) / 2) ** 2
    exponent = (
        float(logarithms.mean()) + variance / 2 + math.sqrt(mean_part + variance_part)
    )
    return count / len(values) * math.exp(min(exponent, 700.0))


def group_means(values: Sequence[float], groups: Sequence[object]) -> Floats:
    """Return the mean of the values of each group, in the order in which the groups come first."""
    rows: dict[object, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        rows.setdefault(group, []).append(value)
    return np.array([math.fsum(row) / len(row) for row in rows.values()])
