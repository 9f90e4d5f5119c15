"""Ranks models over tasks: ranges of ranks, Borda, Kemeny, interquartile mean, profiles; and Spearman's correlation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.results.statistics.comparison import Decision
from helm_longctx.results.statistics.intervals import Floats, normal_quantile


@dataclass(frozen=True)
class Rank:
    """The rank of a model, from 1 for the best, with its 95 % range. Models with equal scores share the best rank."""

    rank: float
    low: int
    high: int


def rank_ranges(
    scores: Mapping[str, float], decisions: Mapping[tuple[str, str], Decision]
) -> dict[str, Rank]:
    """Rank models by their scores, with the ranks that the decisions about all pairs allow.

    A model's rank is at least 1 + the number of models that are surely better, and at most the number of models less
    those that are surely worse. As the decisions are all right in 95 % of cases, all ranges together contain the true
    ranks in 95 % (Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91).

    Args:
        scores: the score of each model, no NaN.
        decisions: by the names of both models; see `find_differences`. A pair without a decision is tied.
    """
    from scipy.stats import rankdata

    # The scores are rounded, because equal means can differ in the last digit by the order of summation.
    ranks = rankdata([-round(score, 12) for score in scores.values()], method="min")
    better = dict.fromkeys(scores, 0)
    worse = dict.fromkeys(scores, 0)
    for (one, other), decision in decisions.items():
        if decision.is_different:
            winner, loser = (one, other) if decision.comparison.effect.mean > 0 else (other, one)
            better[loser] += 1
            worse[winner] += 1
    ranges = {}
    for model, rank in zip(scores, ranks, strict=True):
        ranges[model] = Rank(float(rank), 1 + better[model], len(scores) - worse[model])
    return ranges


def borda(table: ArrayLike) -> Floats:
    """Return Borda's points of each model: the number of models that it is better than, as a mean over tasks.

    A tie counts half, and so does a task in which one of two models has no score.
    """
    return np.asarray(_preferences(table).sum(axis=1))


def kemeny(table: ArrayLike) -> list[int]:
    """Return the models' order, best first, that contradicts the tasks' orders of pairs least often (Kemeny 1959).

    The search starts from Borda's order and from the order of the means, and moves one model at a time until no move
    helps. The result is nearly always the exact solution, but a proof is not feasible for dozens of models.

    Args:
        table: shape (models, tasks). NaN where a model has no score.
    """
    preferences = _preferences(table)
    means = np.nanmean(np.asarray(table, dtype=float), axis=1)
    # The sort is stable, so that the order of tied models does not depend on the algorithm.
    starts = [np.argsort(-key, kind="stable") for key in (preferences.sum(axis=1), means)]
    orders = [_improve([int(model) for model in start], preferences) for start in starts]
    return min(orders, key=lambda order: _contradictions(order, preferences))


def interquartile_mean(values: ArrayLike) -> float:
    """Return the mean of the middle half of all scores, as in rliable (Agarwal et al. 2021)."""
    from scipy.stats import trim_mean

    return float(trim_mean(np.asarray(values, dtype=float), proportiontocut=0.25, axis=None))


def performance_profile(values: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Return for each threshold the share of all scores above it, as in rliable (Agarwal et al. 2021)."""
    scores = np.asarray(values, dtype=float).ravel()
    limits = np.asarray(thresholds, dtype=float)
    return np.asarray((scores[:, None] > limits).mean(axis=0))


def _preferences(table: ArrayLike) -> Floats:
    """Return the share of tasks in which a model (row) is better than another (column): shape (models, models)."""
    scores = np.asarray(table, dtype=float)
    first = scores[:, None]
    second = scores[None]
    # A comparison with NaN is false, so a missing score counts half for both models, like a tie.
    wins = np.asarray((0.5 + 0.5 * (first > second) - 0.5 * (first < second)).mean(axis=2))
    np.fill_diagonal(wins, 0)
    return wins


def _improve(order: list[int], preferences: Floats) -> list[int]:
    """Move models to better positions until there are none."""
    while True:
        before = _contradictions(order, preferences)
        for model in sorted(order):
            others = np.array([other for other in order if other != model])
            # costs[p] are the contradictions if the model stands before others[p]: those with the models that are then
            # ahead of it, although it beats them, and those with the models behind it that beat it.
            behind = preferences[model, others]
            ahead = preferences[others, model]
            costs_behind = np.concatenate([[0], behind.cumsum()])
            costs_ahead = np.concatenate([ahead[::-1].cumsum()[::-1], [0]])
            costs = costs_behind + costs_ahead
            order = [int(other) for other in np.insert(others, int(costs.argmin()), model)]
        # Without a margin the loop could be endless, because by rounding two orders can each seem better.
        if _contradictions(order, preferences) >= before - 1e-12:
            return order


def _contradictions(order: Sequence[int], preferences: Floats) -> float:
    return float(np.tril(preferences[np.ix_(order, order)]).sum())


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
        x, y: shape (n,). NaN for a missing value.
        clusters: the number of independent groups of rows, such as the questions that several models answered. The
            p-value and the interval then count each group as one pair. None if all rows are independent.
    """
    from scipy.stats import rankdata, t

    first = np.asarray(x, dtype=float)
    second = np.asarray(y, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    first = first[both]
    second = second[both]
    n = len(first)
    # NumPy would return NaN with a warning for a constant column.
    if n < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(math.nan, math.nan, math.nan, math.nan, n)
    first = rankdata(first)
    second = rankdata(second)
    rho = float(np.corrcoef(first, second)[0, 1])
    pairs = n if clusters is None else min(clusters, n)
    if pairs == n <= _MOST_EXACT:
        # The share of all orders of the second column whose correlation is as far from 0 as the observed one.
        first = first - first.mean()
        second = second - second.mean()
        p_value = float((np.abs(second[_orders(n)] @ first) >= abs(first @ second) - 1e-9).mean())
    elif pairs < 3:
        p_value = math.nan
    else:
        ratio = math.inf if abs(rho) >= 1 else abs(rho) * math.sqrt((pairs - 2) / (1 - rho**2))
        # Of all n! orders, two are perfect: the same one and its reverse.
        p_value = max(2 * float(t.sf(ratio, pairs - 2)), 2 * math.exp(-math.lgamma(pairs + 1)))
    if pairs < FEWEST:
        return Correlation(rho, p_value, math.nan, math.nan, n)
    # Fisher's transformation of 1 is infinite. The middle between 1 and the next correlation of n ranks stands for it.
    largest = 1 - 6 / (pairs * (pairs**2 - 1))
    centre = math.atanh(max(-largest, min(largest, rho)))
    # Bonett and Wright's 1 + rho²/2 replaces the 1 of Pearson's correlation: that is too small for ranks.
    half = normal_quantile() * math.sqrt((1 + rho**2 / 2) / (pairs - 3))
    low = min(math.tanh(centre - half), rho)
    high = max(math.tanh(centre + half), rho)
    return Correlation(rho, p_value, low, high, n)


@lru_cache(maxsize=2)
def _orders(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)
