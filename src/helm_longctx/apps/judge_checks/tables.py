"""Intervals of the agreement of raters with grades, from the table of how often two of them gave which two grades.

A bootstrap fails where grades are uneven: most of its resamples lack the rare grade or have no disagreement. Here, the
shares of all pairs of grades are drawn from Dirichlet distributions, twice, with a little added to the counts: once
disagreement in every pair of grades, and once agreement in every grade. The interval contains both ranges. Of more than
two raters, the items have drawn weights, because the pairs of grades of an item are not independent. Ratings that are no
grades have a jackknife of −log(1 − alpha), because the bootstrap's intervals are too narrow for few items.
`bench/decisions/tails.py` simulates how often it contains the true coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.level import LEVEL
from helm_longctx.tasks.judge_scores import Ratings

_Tables = NDArray[np.float64]
"""Shares of pairs of grades, shape (draws, grades, grades), with the sum 1 in each draw."""

_DRAWS = 2000
"""Number of draws of each of the two distributions."""

_DISAGREEING = 1.0
_AGREEING = 2.0
"""Number of items that are added: spread over all pairs of grades, and over the pairs of equal grades."""

_LARGEST = 1_000_000
"""Number of values that are drawn at a time, so that many grades do not take much memory."""

Coefficient = Callable[[_Tables, Ratings], Ratings]
"""Computes a coefficient of each table from the tables and the sorted grades of their rows."""


def table_interval(
    first: Ratings,
    second: Ratings,
    coefficient: Coefficient,
) -> tuple[float, float]:
    """Return the ends of the interval of a coefficient of agreement.

    Args:
        first, second: the grades of the same items, shape (items,), of which at least two differ.
        coefficient: such as `weighted_kappas`.
    """
    grades, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    size = len(grades)
    counts = np.zeros((size, size))
    np.add.at(counts, (codes[: len(first)], codes[len(first) :]), 1)
    spread = counts + _DISAGREEING / size**2
    equal = counts + _AGREEING / size * np.eye(size)
    tail = (1 - LEVEL) / 2
    ends = []
    for weights in (spread, equal):
        drawn = []
        for tables in _draw_tables(weights):
            drawn.append(coefficient(tables, grades))
        ends.append(np.nanquantile(np.concatenate(drawn), [tail, 1 - tail]))
    low = min(float(pair[0]) for pair in ends)
    high = max(float(pair[1]) for pair in ends)
    return low, high


def alpha_interval(ratings: Ratings) -> tuple[float, float]:
    """Return the ends of the interval of Krippendorff's ordinal alpha of any number of raters.

    Args:
        ratings: grades, shape (raters, items); NaN where a rater gave none. Each item has at least two, and at least two
            grades differ.
    """
    is_known = ~np.isnan(ratings)
    grades = np.unique(ratings[is_known])
    size = len(grades)
    # How often each item has each grade, shape (items, grades).
    counts = (ratings[None] == grades[:, None, None]).sum(axis=1).T.astype(float)
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(size), range(size)] -= counts
    # An item counts as often as it has ratings, as in Krippendorff's table of coincidences.
    pairs /= (raters - 1)[:, None, None] * raters.mean()
    items = pairs.reshape(len(counts), size * size)
    every = np.full(size * size, _DISAGREEING / size**2)
    equal = (_AGREEING / size * np.eye(size)).ravel()
    random = np.random.default_rng(0)
    tail = (1 - LEVEL) / 2
    ends = []
    for added in (every, equal):
        weights = random.standard_gamma(1.0, (_DRAWS, len(items)))
        drawn = weights @ items + random.standard_gamma(
            np.broadcast_to(added, (_DRAWS, size**2))
        )
        tables = (drawn / drawn.sum(axis=1, keepdims=True)).reshape(_DRAWS, size, size)
        ends.append(np.nanquantile(ordinal_alphas(tables, grades), [tail, 1 - tail]))
    low = min(float(pair[0]) for pair in ends)
    high = max(float(pair[1]) for pair in ends)
    return low, high


def score_alpha_interval(ratings: Ratings) -> tuple[float, float]:
    """Return the ends of the interval of Krippendorff's alpha of scores, for which differences are squared.

    Student's quantile has half of the degrees of freedom, because few items estimate the jackknife's variance badly.

    Args:
        ratings: shape (raters, items), of which not all items have equal ratings; NaN where a rater gave none. Each item
            has at least two.
    """
    from scipy.stats import t

    is_known = ~np.isnan(ratings)
    scores = np.where(is_known, ratings, 0.0)
    raters = is_known.sum(axis=0)
    sums = scores.sum(axis=0)
    squares = (scores**2).sum(axis=0)
    # Of each item, the squared differences of all ordered pairs, for each rating.
    differences = 2 * (raters * squares - sums**2) / (raters - 1)

    def transform(without: Ratings) -> Ratings:
        """Return −log(1 − alpha), without each item's share."""
        count = raters.sum() - without * raters
        observed = (differences.sum() - without * differences) / count
        every = (
            count * (squares.sum() - without * squares)
            - (sums.sum() - without * sums) ** 2
        )
        by_chance = 2 * every / (count * (count - 1))
        return np.asarray(np.log(by_chance) - np.log(np.maximum(observed, 1e-12)))

    items = ratings.shape[1]
    whole = float(transform(np.zeros(items))[0])
    pseudo_values = items * whole - (items - 1) * transform(np.ones(items))
    error = float(pseudo_values.std(ddof=1)) / math.sqrt(items)
    half = float(t.isf((1 - LEVEL) / 2, (items - 1) / 2)) * error
    return 1 - math.exp(half - whole), 1 - math.exp(-half - whole)


def _draw_tables(weights: _Tables) -> Iterator[_Tables]:
    """Yield `_DRAWS` tables of a Dirichlet distribution, of which weights can be 0."""
    # The same ratings have the same interval every time.
    random = np.random.default_rng(0)
    at_a_time = max(_LARGEST // weights.size, 1)
    for start in range(0, _DRAWS, at_a_time):
        number = min(at_a_time, _DRAWS - start)
        drawn = random.standard_gamma(
            np.broadcast_to(weights, (number, *weights.shape))
        )
        yield drawn / drawn.sum(axis=(1, 2), keepdims=True)


def kappas(tables: _Tables, grades: Ratings) -> Ratings:
    """Return Cohen's kappa of each table; NaN where only one grade has a share."""
    return _compute_kappas(tables, 1.0 - np.eye(len(grades)))


def weighted_kappas(tables: _Tables, grades: Ratings) -> Ratings:
    """Return Cohen's kappa with quadratic weights of each table; NaN where only one grade has a share."""
    return _compute_kappas(tables, (grades[:, None] - grades[None, :]) ** 2)


def _compute_kappas(tables: _Tables, distances: Ratings) -> Ratings:
    observed = np.einsum("dij,ij->d", tables, distances)
    by_chance = np.einsum(
        "di,ij,dj->d", tables.sum(axis=2), distances, tables.sum(axis=1)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - observed / by_chance, dtype=np.float64)


def ordinal_alphas(tables: _Tables, grades: Ratings) -> Ratings:
    """Return Krippendorff's ordinal alpha of each table as of very many items; NaN where only one grade has a share.

    Two grades are as far apart as their middle ranks among all ratings.
    """
    shares = (tables.sum(axis=2) + tables.sum(axis=1)) / 2
    ranks = shares.cumsum(axis=1) - shares / 2
    distances = (ranks[:, :, None] - ranks[:, None, :]) ** 2
    observed = np.einsum("dij,dij->d", tables, distances)
    by_chance = np.einsum("di,dij,dj->d", shares, distances, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - observed / by_chance, dtype=np.float64)
