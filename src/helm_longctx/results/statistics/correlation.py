"""Spearman's rank correlation with p-values and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from helm_longctx.statistics.intervals import normal_quantile

FEWEST = 4
"""Smallest number of pairs for an interval."""

# Fisher's transformation of 1 is infinite.
_NEAR_ONE = 1 - 1e-9


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of two columns.

    Args:
        rho: the correlation; NaN if a column is constant or there are fewer than 3 pairs.
        p_value: the two-sided p-value of the t approximation.
        low, high: the 95 % interval; NaN for fewer than 4 pairs.
        n: number of pairs.
    """

    rho: float
    p_value: float
    low: float
    high: float
    n: int


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Correlate two columns over the rows in which both have a value.

    The interval is Fisher's with the standard error of Bonett and Wright (2000).

    Args:
        x, y: shape (n,); NaN for a missing value.
    """
    from scipy.stats import spearmanr

    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = first[both], second[both]
    n = len(first)
    # SciPy would return NaN with a warning for a constant column.
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(math.nan, math.nan, math.nan, math.nan, n)
    rho, p_value = (float(value) for value in spearmanr(first, second))
    return Correlation(rho, p_value, *_fisher(rho, n), n)


def matrix(columns: Mapping[str, ArrayLike]) -> dict[tuple[str, str], Correlation]:
    """Correlate every two columns, whose rows are the same models in the same order.

    Returns:
        The correlation by the names of both, the earlier column first.
    """
    return {(one, other): spearman(columns[one], columns[other]) for one, other in combinations(columns, 2)}


def _fisher(rho: float, n: int) -> tuple[float, float]:
    if n < FEWEST:
        return math.nan, math.nan
    centre = math.atanh(max(-_NEAR_ONE, min(_NEAR_ONE, rho)))
    # Bonett and Wright's 1 + rho²/2 replaces the 1 of Pearson's correlation, which is too small for ranks.
    half = normal_quantile() * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(centre - half), math.tanh(centre + half)
