"""Spearman's rank correlation with p-values and intervals."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.results.statistics.intervals import normal_quantile

FEWEST = 4
"""Smallest number of pairs for an interval."""

_MOST_EXACT = 9
"""Largest number of pairs for which all orders are tried: 9! are 362,880."""


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of two columns.

    Args:
        rho: the correlation; NaN if a column is constant or there are fewer than 3 pairs.
        p_value: the two-sided p-value. Up to nine pairs it is the share of all orders with at least this correlation;
            for more, the p-value of the t approximation, but at least the p-value of a perfect order.
        low, high: the 95 % interval; NaN for fewer than 4 independent pairs.
        n: number of pairs.
    """

    rho: float
    p_value: float
    low: float
    high: float
    n: int


def spearman(x: ArrayLike, y: ArrayLike, clusters: int | None = None) -> Correlation:
    """Correlate two columns over the rows in which both have a value.

    The interval is Fisher's with the standard error of Bonett and Wright (2000). It always has a width.

    Args:
        x, y: shape (n,); NaN for a missing value.
        clusters: the number of independent groups of rows, such as the questions that several models answered. The
            p-value and the interval then count each group as one pair. None if all rows are independent.
    """
    from scipy.stats import rankdata

    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = first[both], second[both]
    n = len(first)
    # NumPy would return NaN with a warning for a constant column.
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(math.nan, math.nan, math.nan, math.nan, n)
    first, second = rankdata(first), rankdata(second)
    rho = float(np.corrcoef(first, second)[0, 1])
    pairs = n if clusters is None else min(clusters, n)
    if pairs == n <= _MOST_EXACT:
        # The share of all orders of the second column whose correlation is as far from 0 as the observed one.
        first, second = first - first.mean(), second - second.mean()
        p_value = float((np.abs(second[_orders(n)] @ first) >= abs(first @ second) - 1e-9).mean())
    else:
        p_value = _approximate(rho, pairs)
    return Correlation(rho, p_value, *_fisher(rho, pairs), n)


def matrix(columns: Mapping[str, ArrayLike]) -> dict[tuple[str, str], Correlation]:
    """Correlate every two columns, whose rows are the same models in the same order.

    Returns:
        The correlation by the names of both, the earlier column first.
    """
    return {(one, other): spearman(columns[one], columns[other]) for one, other in combinations(columns, 2)}


def _approximate(rho: float, n: int) -> float:
    """Return the p-value of the t approximation; NaN for fewer than 3 pairs."""
    from scipy.stats import t

    if n < 3:
        return math.nan
    ratio = math.inf if abs(rho) >= 1 else abs(rho) * math.sqrt((n - 2) / (1 - rho**2))
    # Of all n! orders, two are perfect: the same one and its reverse.
    return max(2 * float(t.sf(ratio, n - 2)), 2 * math.exp(-math.lgamma(n + 1)))


@lru_cache(maxsize=2)
def _orders(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)


def _fisher(rho: float, n: int) -> tuple[float, float]:
    if n < FEWEST:
        return math.nan, math.nan
    # Fisher's transformation of 1 is infinite. The middle between 1 and the next correlation of n ranks stands for it.
    largest = 1 - 6 / (n * (n**2 - 1))
    centre = math.atanh(max(-largest, min(largest, rho)))
    # Bonett and Wright's 1 + rho²/2 replaces the 1 of Pearson's correlation, which is too small for ranks.
    half = normal_quantile() * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return min(math.tanh(centre - half), rho), max(math.tanh(centre + half), rho)
