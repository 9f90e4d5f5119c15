"""Ranks models over tasks: intervals of ranks, Borda, Kemeny, interquartile mean, performance profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.statistics.intervals import LEVEL, Floats, group_codes

RESAMPLES = 2000
"""Number of resamples of the bootstrap."""

_BLOCK = 200
"""Number of resamples that are computed at once, which limits the memory."""


@dataclass(frozen=True)
class Cell:
    """All models' scores on the instances of one task at one length.

    Args:
        scores: shape (models, instances); NaN for a missing score.
        groups: the group of each instance; cells can share groups, such as the same questions at several lengths.
    """

    scores: ArrayLike
    groups: Sequence[object]


@dataclass(frozen=True)
class Rank:
    """The rank of a model, from 1 for the best, with its 95 % interval. Models with equal scores share a mean rank."""

    rank: float
    low: int
    high: int


def rank_intervals(cells: Sequence[Cell], seed: int = 0) -> list[Rank]:
    """Rank models by the mean of the cells' means, with intervals from a bootstrap over groups.

    Each resample weights the groups at random (the Bayesian bootstrap, Rubin 1981); a group has the same weight in all
    cells and for all models, so that the comparison stays paired.

    Returns:
        The ranks, in the order of the models.
    """
    arrays = [np.asarray(cell.scores, dtype=float) for cell in cells]
    # The groups of all cells are numbered together, so that a group has the same weight in all its cells.
    codes = group_codes([group for cell in cells for group in cell.groups], sum(each.shape[1] for each in arrays))
    places = np.split(codes, np.cumsum([each.shape[1] for each in arrays])[:-1])
    groups, random = int(codes.max()) + 1, np.random.default_rng(seed)
    # Equal weights give the plain means, and so the ranks that are reported.
    found = _means(arrays, places, np.ones((1, groups)))
    samples = np.concatenate(
        [
            # Exponential weights are the Dirichlet weights of the Bayesian bootstrap times a factor that cancels in the
            # means.
            _ranks(_means(arrays, places, random.standard_exponential((_BLOCK, groups))))
            for _ in range(RESAMPLES // _BLOCK)
        ]
    )
    tail = (1 - LEVEL) / 2
    # With "nearest", the ends are ranks that occurred.
    lows, highs = np.quantile(samples, [tail, 1 - tail], axis=0, method="nearest")
    # The mean rank of tied models can be between two ranks. The interval then contains both.
    return [
        Rank(float(rank), math.floor(low), math.ceil(high))
        for rank, low, high in zip(_ranks(found)[0], lows, highs, strict=True)
    ]


def borda(table: ArrayLike) -> Floats:
    """Return Borda's points of each model: the number of models that it is better than, as a mean over tasks.

    A tie counts half, and so does a task in which one of two models has no score.

    Args:
        table: shape (models, tasks); NaN where a model has no score.
    """
    return np.asarray(_preferences(table).sum(axis=1))


def kemeny(table: ArrayLike) -> list[int]:
    """Return the models' order, best first, that contradicts the tasks' orders of pairs least often (Kemeny 1959).

    The search starts from Borda's order and from that of the means, and moves one model at a time until no move helps.
    The result is nearly always the exact solution, but a proof is not feasible for dozens of models.

    Args:
        table: shape (models, tasks); NaN where a model has no score.
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
    scores, limits = np.asarray(values, dtype=float).ravel(), np.asarray(thresholds, dtype=float)
    return np.asarray((scores[:, None] > limits).mean(axis=0))


def _means(arrays: Sequence[Floats], places: Sequence[NDArray[np.intp]], weights: Floats) -> Floats:
    """Return each model's mean of the cells' weighted means: shape (resamples, models)."""
    total = np.zeros((len(weights), len(arrays[0])))
    for scores, codes in zip(arrays, places, strict=True):
        # The weight of a missing score is also removed from the denominator. The score is 0, so the product is finite.
        present = ~np.isnan(scores)
        of_instances = weights[:, codes]
        total += (of_instances @ np.where(present, scores, 0).T) / (of_instances @ present.T)
    return total / len(arrays)


def _ranks(means: Floats) -> Floats:
    from scipy.stats import rankdata

    # The means are rounded, because equal means can differ in the last digit by the order of summation.
    return np.asarray(rankdata(-means.round(12), axis=1))


def _preferences(table: ArrayLike) -> Floats:
    """Return the share of tasks in which a model (row) is better than another (column): shape (models, models)."""
    scores = np.asarray(table, dtype=float)
    first, second = scores[:, None], scores[None]
    # A comparison with NaN is false, so a missing score counts half for both models, like a tie.
    wins = np.asarray((0.5 + 0.5 * (first > second) - 0.5 * (first < second)).mean(axis=2))
    np.fill_diagonal(wins, 0)
    return wins


def _improve(order: list[int], preferences: Floats) -> list[int]:
    """Move models to better places until there are none."""
    while True:
        before = _contradictions(order, preferences)
        for model in sorted(order):
            others = np.array([other for other in order if other != model])
            # costs[p] are the contradictions if the model stands before others[p]: those with the models that are then
            # ahead of it, although it beats them, and those with the models behind it that beat it.
            behind, ahead = preferences[model, others], preferences[others, model]
            costs = np.concatenate([[0], behind.cumsum()]) + np.concatenate([ahead[::-1].cumsum()[::-1], [0]])
            order = [int(other) for other in np.insert(others, int(costs.argmin()), model)]
        # Without a margin the loop could be endless, because by rounding two orders can each seem better.
        if _contradictions(order, preferences) >= before - 1e-12:
            return order


def _contradictions(order: Sequence[int], preferences: Floats) -> float:
    return float(np.tril(preferences[np.ix_(order, order)]).sum())
