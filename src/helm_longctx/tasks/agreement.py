"""Coefficients of the agreement of raters: Cohen's kappa and Krippendorff's alpha. NaN is a missing rating."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ratings = NDArray[np.float64]

STEPS, GRADES = 12, 100
"""Ratings are grades if they are multiples of 1, 1/2, … or 1/12 (`STEPS`) and at most 100 steps (`GRADES`) apart.
Cohen's kappa has no meaning for other ratings."""


def cohen_kappa(one: ArrayLike, other: ArrayLike, weights: str | None = None) -> float:
    """Compute Cohen's kappa with scikit-learn.

    Args:
        weights: None, or "quadratic" for ratings that are grades.

    Returns:
        At most 1; NaN if there are no items, all ratings are equal, or the ratings are not grades.
    """
    grades = grades_of(np.stack(common_ratings(one, other)))
    return math.nan if grades is None else kappa_of_grades(grades[0], grades[1], weights)


def krippendorff_alpha(ratings: ArrayLike, level: str = "ordinal") -> float:
    """Compute Krippendorff's alpha with the package krippendorff.

    Args:
        ratings: array of shape (raters, items).
        level: level of measurement: `nominal`, `ordinal` or `interval`.

    Returns:
        At most 1; NaN if no item has two ratings, or all ratings of such items are equal.
    """
    import krippendorff

    table = np.atleast_2d(np.asarray(ratings, dtype=float))
    pairable = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    # The package raises an error if all ratings are equal.
    if len(np.unique(pairable[~np.isnan(pairable)])) < 2:
        return math.nan
    return float(krippendorff.alpha(reliability_data=pairable, level_of_measurement=level))


def common_ratings(one: ArrayLike, other: ArrayLike) -> tuple[Ratings, Ratings]:
    """Return the ratings of the items that both raters rated."""
    first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both]


def grades_of(pairs: Ratings) -> Ratings | None:
    """Scale ratings to whole numbers, which keeps the ratios of distances; return None if they are not grades."""
    for steps in range(1, STEPS + 1):
        grades = np.round(pairs * steps)
        # More steps only make the distances larger, so the search ends here.
        if grades.size and np.nanmax(grades) - np.nanmin(grades) > GRADES:
            return None
        if np.allclose(pairs * steps, grades, atol=1e-6, equal_nan=True):
            return grades
    return None


def kappa_of_grades(first: Ratings, second: Ratings, weights: str | None) -> float:
    """Compute Cohen's kappa of grades; see `cohen_kappa`."""
    from sklearn.metrics import cohen_kappa_score

    values = np.concatenate([first, second])
    if len(np.unique(values)) < 2:
        return math.nan
    # scikit-learn measures distances by positions in the list of labels, so grades that nobody gave must be in it too.
    labels = np.arange(values.min(), values.max() + 1)
    return float(cohen_kappa_score(first, second, labels=labels, weights=weights))
