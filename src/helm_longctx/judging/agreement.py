"""How far raters of the same items agree: shares, Cohen's kappa, Krippendorff's alpha, with bootstrap intervals.

Ratings are numbers, NaN where a rater gave none. An item counts where both raters of a pair rated it, for alpha where
at least two did. What is not defined is NaN, and `Agreement.note` says why.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ratings = NDArray[np.float64]

RESAMPLES = 1000
FEWEST = 10
"""Items from which an interval is given."""

DEFINED = 0.95
"""Share of the resamples in which a coefficient must be defined for an interval of it."""

STEPS, GRADES = 12, 100
"""Ratings are grades if they are multiples of 1, 1/2, … 1/12, and at most so many steps apart; Cohen's kappa has no
meaning for others."""


@dataclass(frozen=True)
class Estimate:
    """A coefficient with its 95 % bootstrap interval over items."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Agreement:
    """How far two raters agree.

    Args:
        n: items that both rated.
        same: share of equal ratings.
        kappa: Cohen's, where any two different ratings are as far apart as any other.
        weighted_kappa: Cohen's with quadratic weights: two grades apart is four times as bad as one.
        alpha: Krippendorff's, ordinal for grades, else interval.
        note: why something is NaN; empty if nothing is.
    """

    n: int
    same: Estimate
    kappa: Estimate
    weighted_kappa: Estimate
    alpha: Estimate
    note: str


def agreement(one: ArrayLike, other: ArrayLike) -> Agreement:
    """Compare two raters' ratings of the same items, in the same order."""
    first, second = _rated_by_both(one, other)
    pairs = np.stack([first, second])
    graded = _grades(pairs)
    level = "interval" if graded is None else "ordinal"
    ratings = pairs if graded is None else graded

    def estimate(statistic: Callable[[Ratings, Ratings], float]) -> Estimate:
        return _estimate(ratings, statistic)

    def kappa(weights: str | None) -> Estimate:
        return Estimate(math.nan) if graded is None else estimate(partial(_kappa, weights=weights))

    return Agreement(
        n=first.size,
        same=estimate(_same),
        kappa=kappa(None),
        weighted_kappa=kappa("quadratic"),
        alpha=estimate(lambda a, b: krippendorff_alpha(np.stack([a, b]), level)),
        note=_note(pairs, graded),
    )


def pairwise(ratings: Mapping[str, ArrayLike], jury: Collection[str]) -> Iterator[tuple[str, Agreement]]:
    """Who, and how far they agree: every two raters, and the whole jury if it has more than two.

    Args:
        ratings: by rater, of the same items in the same order.
        jury: which of the raters are judges.
    """
    for one, other in combinations(ratings, 2):
        yield f"{one} / {other}", agreement(ratings[one], ratings[other])
    if len(jury) > 2:
        yield f"all {len(jury)} judges", agreement_of_all([ratings[judge] for judge in jury])


def agreement_of_all(ratings: Sequence[ArrayLike]) -> Agreement:
    """Krippendorff's alpha of any number of raters; the rest of the `Agreement`, which is of two, is NaN."""
    given = np.stack([np.asarray(each, dtype=float) for each in ratings])
    rated = given[:, (~np.isnan(given)).sum(axis=0) >= 2]
    graded = _grades(rated)
    level = "interval" if graded is None else "ordinal"
    alpha = _estimate(rated if graded is None else graded, lambda *rows: krippendorff_alpha(np.stack(rows), level))
    nothing = Estimate(math.nan)
    return Agreement(rated.shape[1], nothing, nothing, nothing, alpha, _note(rated, rated))


def cohen_kappa(one: ArrayLike, other: ArrayLike, weights: str | None = None) -> float:
    """Cohen's kappa by scikit-learn.

    Args:
        weights: None, or "quadratic" for ratings that are grades.

    Returns:
        At most 1; NaN without items, where all ratings are the same, and where they are no grades.
    """
    graded = _grades(np.stack(_rated_by_both(one, other)))
    return math.nan if graded is None else _kappa(graded[0], graded[1], weights)


def krippendorff_alpha(ratings: ArrayLike, level: str = "ordinal") -> float:
    """Krippendorff's alpha by the package of that name.

    Args:
        ratings: shape (raters, items).
        level: `nominal`, `ordinal` or `interval`.

    Returns:
        At most 1; NaN where no item has two ratings, or all these are the same.
    """
    import krippendorff

    given = np.atleast_2d(np.asarray(ratings, dtype=float))
    paired = given[:, (~np.isnan(given)).sum(axis=0) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        return math.nan
    return float(krippendorff.alpha(reliability_data=paired, level_of_measurement=level))


def _rated_by_both(one: ArrayLike, other: ArrayLike) -> tuple[Ratings, Ratings]:
    first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both]


def _grades(pairs: Ratings) -> Ratings | None:
    """The ratings as whole numbers, which keep their distances; None if they are too fine for grades."""
    for steps in range(1, STEPS + 1):
        grades = np.round(pairs * steps)
        if grades.size and np.nanmax(grades) - np.nanmin(grades) > GRADES:
            return None
        if np.allclose(pairs * steps, grades, atol=1e-6, equal_nan=True):
            return grades
    return None


def _kappa(first: Ratings, second: Ratings, weights: str | None) -> float:
    from sklearn.metrics import cohen_kappa_score

    values = np.concatenate([first, second])
    if len(np.unique(values)) < 2:
        return math.nan
    # With quadratic weights scikit-learn counts places in its list of labels: a grade that nobody gave has one too.
    labels = np.arange(values.min(), values.max() + 1)
    return float(cohen_kappa_score(first, second, labels=labels, weights=weights))


def _same(first: Ratings, second: Ratings) -> float:
    return float(np.isclose(first, second).mean()) if first.size else math.nan


def _estimate(ratings: Ratings, statistic: Callable[..., float]) -> Estimate:
    from scipy.stats import bootstrap

    value = statistic(*ratings)
    if math.isnan(value) or ratings.shape[1] < FEWEST:
        return Estimate(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's own interval is NaN if one resample is undefined
        found = bootstrap(
            tuple(ratings),
            statistic,
            paired=True,
            vectorized=False,
            n_resamples=RESAMPLES,
            method="percentile",
            random_state=0,
        ).bootstrap_distribution
    if np.isnan(found).mean() > 1 - DEFINED:
        return Estimate(value)
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def _note(pairs: Ratings, graded: Ratings | None) -> str:
    n = pairs.shape[1]
    if n == 0:
        return "no item has both ratings"
    if len(np.unique(pairs[~np.isnan(pairs)])) < 2:
        return "all ratings are the same: chance cannot be told from agreement"
    notes = []
    if graded is None:
        notes.append("no grades: no kappa")
    if n < FEWEST:
        notes.append(f"fewer than {FEWEST} items: no interval")
    return "; ".join(notes)
