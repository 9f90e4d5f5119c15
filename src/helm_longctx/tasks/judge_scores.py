"""Scores from the replies of one or several judges, and coefficients of their agreement. Imports no HELM."""

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.tasks.judgement import ANSWER as ANSWER
from helm_longctx.tasks.statistic_names import StatisticName
from helm_longctx.tasks.task import MetricValues, ScorerInput, Shape, is_text

TRUE_NLI = "google/t5_xxl_true_nli_mixture"
"""The official judge of citations, a model with 11 billion parameters."""

JUDGED = ("judge_score", "judge_score_strict", "judge_spread")
"""The metrics of a task whose main score is a judge's."""


def _is_reply(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else [value]
    return all(part is None or is_text(part) for part in parts)


def _is_jury(value: Any) -> bool:
    replies = value.get("replies") if isinstance(value, dict) else None
    # An annotator leaves an empty jury where nothing was judged.
    return value == {} or (
        isinstance(replies, dict) and all(map(_is_reply, replies.values()))
    )


REPLIES = {
    "judge": Shape("a judge's reply, or an object of its replies by part", _is_reply),
    "jury": Shape("an object with 'replies', an object of replies by judge", _is_jury),
}
"""The fields of a judged answer's record that a scorer reads."""


def judge_scores(
    record: ScorerInput,
    headline: str,
    score: Callable[[Any], MetricValues],
) -> MetricValues:
    """Score the replies of a `judge`, or take the mean over the judges of a `jury` that gave a verdict.

    Args:
        record: has the replies of one judge under `judge`, or the replies of several judges under `jury`.
        headline: name of the main score. For a jury it is added as a strict score: it is 0 without any verdict,
            and for each judge of several.
        score: scores the replies of one judge. Without a verdict the result lacks the headline.
    """
    if not record.get("jury"):
        return score(record.get("judge"))
    replies_by_judge = record["jury"].get("replies") or {}
    all_scores = {judge: score(replies) for judge, replies in replies_by_judge.items()}
    # Only judges with a verdict are in the mean: a failed call says nothing about the answer.
    valid = {}
    for judge, scores in all_scores.items():
        if headline in scores:
            valid[judge] = scores
    names: dict[str, None] = {}
    for scores in valid.values():
        names |= dict.fromkeys(scores)
    mean = {}
    for name in names:
        mean[name] = fmean(scores[name] for scores in valid.values() if name in scores)
    # The strict score is 0 where no judge gave a verdict, as if the answer were wrong. The plain score is then absent.
    mean[f"{headline}_strict"] = mean.get(headline, 0.0)
    if len(all_scores) > 1:
        headlines = {judge: scores[headline] for judge, scores in valid.items()}
        for judge, value in headlines.items():
            mean[str(StatisticName(headline, judge=judge))] = value
        # A spread needs two verdicts.
        if len(valid) > 1:
            mean["judge_spread"] = max(headlines.values()) - min(headlines.values())
    return mean


Ratings = NDArray[np.float64]
"""Ratings by item; NaN is a missing rating."""

_STEPS = 12
_GRADES = 100
"""Ratings are grades if they are multiples of 1, 1/2, … or 1/12 (`_STEPS`) and at most 100 steps (`_GRADES`) apart.
Cohen's kappa has no meaning for other ratings."""


def cohen_kappa(one: ArrayLike, other: ArrayLike, weights: str | None = None) -> float:
    """Compute Cohen's kappa with scikit-learn.

    Args:
        weights: None, or "quadratic" for ratings that are grades.

    Returns:
        At most 1; NaN if there are no items, all ratings are equal, or the ratings are not grades.
    """
    grades = grades_of(np.stack(common_ratings(one, other)))
    if grades is None:
        return math.nan
    return kappa_of_grades(grades[0], grades[1], weights)


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
    return float(
        krippendorff.alpha(reliability_data=pairable, level_of_measurement=level)
    )


def common_ratings(one: ArrayLike, other: ArrayLike) -> tuple[Ratings, Ratings]:
    """Return the ratings of the items that both raters rated."""
    first = np.asarray(one, dtype=float)
    second = np.asarray(other, dtype=float)
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both]


def grades_of(pairs: Ratings) -> Ratings | None:
    """Scale ratings to whole numbers, so that distances keep their ratios. Return None if they are not grades."""
    for steps in range(1, _STEPS + 1):
        grades = np.round(pairs * steps)
        # More steps only make the distances larger, so the search ends here.
        if grades.size and np.nanmax(grades) - np.nanmin(grades) > _GRADES:
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
