"""Summaries of log-probabilities of answers, of which a few can be very low.

A model that is sure of most answers can give some of them -12 nats. If these are 3 % of all, 20 texts show none of them
in 54 % of samples, and Student's interval then contains the true mean in half of the cases. No interval of a mean holds
for every distribution without bounds (Bahadur and Savage 1956). So the mean has an interval only where enough texts
would show such misses, and the median and the share of misses, whose intervals always hold, stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from helm_longctx.results.statistics.heavy_tails import group_means
from helm_longctx.results.statistics.intervals import (
    Floats,
    Interval,
    ValueKind,
    cluster_sums,
    count_informative,
    group_codes,
    mean_interval,
)
from helm_longctx.results.statistics.level import LEVEL

FEWEST_TEXTS = 100
"""Number of texts of which at least one is a miss in 95 %, if 3 % of all are."""

_FEWEST_INFORMATIVE = 10
"""Effective number of texts that the variance of the mean must come from; see `count_informative`. With fewer, misses
were seen, but too few to know their share."""

TOO_FEW = "too few texts for heavy tails"
"""What is shown instead of an interval."""

MISS = -5.0
"""An answer whose tokens have a lower mean log-probability, in nats, is a miss: a probability below 0.7 % a token."""

_TRIMMED = 0.1
"""The share of texts that the trimmed mean leaves out at each end."""


@dataclass(frozen=True)
class _RobustSummary:
    """What stands beside a mean that a few texts can decide.

    Args:
        median: over texts, with an interval from order statistics. It is right for every distribution. Fewer than
            six texts have none (NaN).
        trimmed_mean: the mean over texts without the lowest and the highest tenth.
        misses: the share of values below `MISS`.
    """

    median: Interval
    trimmed_mean: float
    misses: Interval


def interval_with_misses(
    values: ArrayLike,
    groups: Sequence[object] | None = None,
) -> Interval:
    """Return the mean of values in nats and Student's interval; the ends are NaN if `is_too_few`.

    Args:
        values: shape (n,), in nats.
        groups: the text or question of each value, as for `mean_interval`.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    interval = mean_interval(values, groups, ValueKind.NATS)
    if is_too_few(values, groups):
        return replace(interval, low=math.nan, high=math.nan)
    return interval


def is_too_few(values: ArrayLike, groups: Sequence[object] | None = None) -> bool:
    """Return whether an interval of the mean could be wrong because of misses that too few texts show."""
    numbers = np.asarray(values, dtype=float)
    if not numbers.size:
        return True
    sums = cluster_sums(numbers - numbers.mean(), group_codes(groups, len(numbers)))
    if len(sums) < FEWEST_TEXTS:
        return True
    # Equal values have no variance, and nothing in them is a miss.
    return bool(sums.any()) and count_informative(sums) < _FEWEST_INFORMATIVE


def summarize(values: Sequence[float], groups: Sequence[object]) -> _RobustSummary:
    """Summarize values in nats, at least one, by text.

    Args:
        values: shape (n,), in nats.
        groups: the text or question of each value. The median and the trimmed mean are over their means.
    """
    texts = np.sort(group_means(values, groups))
    left_out = int(_TRIMMED * len(texts))
    return _RobustSummary(
        median=_median(texts),
        trimmed_mean=float(texts[left_out : len(texts) - left_out].mean()),
        misses=mean_interval(np.asarray(values) < MISS, groups),
    )


def _median(texts: Floats) -> Interval:
    """Return the median of sorted values, and the interval of the values at ranks that the median is between in 95 %."""
    from scipy.special import bdtr

    count = len(texts)
    ranks = np.arange(count)
    # The number of values below the median is binomial with a probability of one half.
    outside = int((bdtr(ranks, count, 0.5) <= (1 - LEVEL) / 2).sum())
    median = float(np.median(texts))
    if not outside:
        return Interval(median, math.nan, math.nan, count)
    return Interval(
        median, float(texts[outside - 1]), float(texts[count - outside]), count
    )
