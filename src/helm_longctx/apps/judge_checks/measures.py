"""Statistics of a check and their plot: results by kind of answer, biases, and how far raters of the same items agree.

Scores are 0 to 1. Means are over verdicts; missing verdicts are counted separately and never taken as zero. Ratings are
numbers; NaN means that the rater gave none. Statistics of a pair use the items that both rated, alpha of several raters
those that at least two rated. An undefined statistic is NaN, and `Agreement.note` explains why.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from helm_longctx.apps.judge_checks.tables import (
    Coefficient,
    alpha_interval,
    kappas,
    ordinal_alphas,
    score_alpha_interval,
    table_interval,
    weighted_kappas,
)
from helm_longctx.documents.plots import Spec, judge_panel
from helm_longctx.results.statistics.comparison import Comparison, compare_pairs, holm
from helm_longctx.results.statistics.intervals import Interval, mean_interval
from helm_longctx.tasks.judge_scores import (
    Ratings,
    common_ratings,
    grades_of,
    kappa_of_grades,
    krippendorff_alpha,
)

if TYPE_CHECKING:
    import pandas as pd

_FEWEST = 10
"""Smallest number of items for which an interval is computed."""

_FEWEST_SCORES = 20
"""The same for ratings that are no grades."""


@dataclass(frozen=True)
class _Estimate:
    """A statistic with its interval over items.

    It is Wilson's of a share of equal ratings, `table_interval` of two raters with grades, `alpha_interval` of more, and
    `score_alpha_interval` of ratings that are no grades.
    """

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class RaterAgreement:
    """The agreement of two raters.

    Args:
        n: number of items that both rated.
        kappa: Cohen's kappa, for which all different ratings are equally far apart.
        weighted_kappa: Cohen's kappa with quadratic weights: a difference of two grades counts four times as much as
            one of one grade.
        alpha: Krippendorff's alpha, ordinal for grades, else interval.
    """

    n: int
    same: _Estimate
    kappa: _Estimate
    weighted_kappa: _Estimate
    alpha: _Estimate
    note: str


def agreement(one: ArrayLike, other: ArrayLike) -> RaterAgreement:
    """Compute the agreement of two raters. Their ratings are of the same items in the same order."""
    first, second = common_ratings(one, other)
    pairs = np.stack([first, second])
    grades = grades_of(pairs)
    if grades is None:
        kappa = _Estimate(math.nan)
        weighted_kappa = _Estimate(math.nan)
        alpha = _estimate_of_scores(pairs)
    else:
        kappa = _estimate_by_table(
            kappa_of_grades(grades[0], grades[1], None), grades, kappas
        )
        weighted_kappa = _estimate_by_table(
            kappa_of_grades(grades[0], grades[1], "quadratic"), grades, weighted_kappas
        )
        alpha = _estimate_by_table(
            krippendorff_alpha(grades, "ordinal"), grades, ordinal_alphas
        )
    # Not ==, because a rating such as 1/3 can come from different computations.
    share = mean_interval(np.isclose(first, second))
    same = _Estimate(share.mean)
    if share.n >= _FEWEST:
        same = _Estimate(share.mean, share.low, share.high)
    return RaterAgreement(
        n=first.size,
        same=same,
        kappa=kappa,
        weighted_kappa=weighted_kappa,
        alpha=alpha,
        note=_note(pairs, grades),
    )


def pairwise(
    ratings: Mapping[str, ArrayLike],
    jury: Collection[str],
) -> Iterator[tuple[str, RaterAgreement]]:
    """Yield the names and the agreement of every two raters, and of the whole jury if it has more than two judges."""
    for one, other in combinations(ratings, 2):
        yield f"{one} / {other}", agreement(ratings[one], ratings[other])
    if len(jury) > 2:
        yield (
            f"all {len(jury)} judges",
            agreement_of_all([ratings[judge] for judge in jury]),
        )


def agreement_of_all(ratings: Sequence[ArrayLike]) -> RaterAgreement:
    """Compute Krippendorff's alpha of any number of raters. The other statistics, defined for two raters, are NaN."""
    table = np.stack([np.asarray(rating, dtype=float) for rating in ratings])
    pairable = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    grades = grades_of(pairable)
    if grades is None:
        alpha = _estimate_of_scores(pairable)
    else:
        alpha = _estimate_of_grades(grades)
    undefined = _Estimate(math.nan)
    # The table stands for the grades, because a missing kappa needs no explanation for more than two raters.
    return RaterAgreement(
        pairable.shape[1],
        undefined,
        undefined,
        undefined,
        alpha,
        _note(pairable, pairable),
    )


def _estimate_by_table(
    value: float,
    grades: Ratings,
    coefficient: Coefficient,
) -> _Estimate:
    if math.isnan(value) or grades.shape[1] < _FEWEST:
        return _Estimate(value)
    low, high = table_interval(grades[0], grades[1], coefficient)
    return _Estimate(value, min(low, value), max(high, value))


def _estimate_of_grades(grades: Ratings) -> _Estimate:
    """Return ordinal alpha of any number of raters."""
    value = krippendorff_alpha(grades, "ordinal")
    if math.isnan(value) or grades.shape[1] < _FEWEST:
        return _Estimate(value)
    low, high = alpha_interval(grades)
    return _Estimate(value, min(low, value), max(high, value))


def _estimate_of_scores(ratings: Ratings) -> _Estimate:
    """Return alpha of ratings that are no grades."""
    value = krippendorff_alpha(ratings, "interval")
    if math.isnan(value) or ratings.shape[1] < _FEWEST_SCORES or value == 1:
        return _Estimate(value)
    return _Estimate(value, *score_alpha_interval(ratings))


def _note(pairs: Ratings, grades: Ratings | None) -> str:
    n = pairs.shape[1]
    if n == 0:
        return "no item has both ratings"
    if len(np.unique(pairs[~np.isnan(pairs)])) < 2:
        return "all ratings are equal: agreement cannot be distinguished from chance"
    notes = []
    if grades is None:
        notes.append("the ratings are not grades: no kappa")
    fewest = _FEWEST_SCORES if grades is None else _FEWEST
    if n < fewest:
        notes.append(f"fewer than {fewest} items: no interval")
    elif (grades is None or len(pairs) > 2) and np.array_equal(
        np.nanmax(pairs, axis=0), np.nanmin(pairs, axis=0)
    ):
        notes.append(
            "the raters never differ: only the share of equal ratings has an interval"
        )
    return "; ".join(notes)


_EXPECTED = "expected"

_NULL_KINDS = ("null", "constant")
"""Kinds of answers that contain no information about the question."""

PLACES = ("start", "middle", "end")


@dataclass(frozen=True)
class Measure:
    """A statistic of a judge.

    Args:
        name: what the tables call it.
        value: NaN if no item has the verdicts that it needs.
        good: value of a perfect judge, if there is one.
        n: number of items, or of pairs of items, that it is computed from.
        about: explanation of the value.
        low, high: ends of the interval; NaN if there is none.
    """

    name: str
    value: float
    good: float | None
    n: int
    about: str
    low: float = math.nan
    high: float = math.nan


def by_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarize one judge's verdicts by kind of answer, in the order of the set.

    Returns:
        Index `kind`; columns `items`, `asked`, `judged`, `unreadable`, `failed`, `right` (share of verdicts that are
        as expected), `score` and `expected_score` (means over verdicts).
    """
    import pandas as pd

    groups = rows.groupby("kind", sort=False)
    states = groups["state"].value_counts().unstack(fill_value=0)
    judged = rows[rows["state"] == "judged"].groupby("kind", sort=False)
    return pd.DataFrame(
        {
            "items": groups["id"].nunique(),
            "asked": groups.size(),
            **{
                state: states.get(state, 0)
                for state in ("judged", "unreadable", "failed")
            },
            "right": judged["right"].apply(lambda right: right.astype(float).mean()),
            "score": judged["score"].mean(),
            "expected_score": judged["expected_score"].mean(),
        }
    ).reindex(rows["kind"].drop_duplicates())


def measures(rows: pd.DataFrame) -> list[Measure]:
    """Measure a judge's correctness, consistency, and bias towards injected instructions, padding and null answers."""
    judged = rows[rows["state"] == "judged"]
    empty = judged[judged["kind"].isin(_NULL_KINDS)]
    return [
        _mean(
            "right",
            judged["right"].astype(float),
            judged,
            1.0,
            "share of verdicts that are as expected",
        ),
        # A right answer should score high, so the plain mean of scores says nothing about bias.
        _difference(
            "bias",
            judged["score"],
            judged["expected_score"],
            judged,
            "score minus expected score",
        ),
        _mean(
            "null answers earn",
            empty["score"],
            empty,
            0.0,
            "score of null and constant answers",
        ),
        _gain(
            judged,
            "injection",
            "instructions gain",
            "score that orders to the judge add to a wrong answer",
        ),
        _gain(
            judged,
            "over_long",
            "length gains",
            "score that padding adds, apart from what the rubric gives for it",
        ),
        _gain(
            judged,
            "repeated",
            "repetition gains",
            "score that repeated sentences add, in the same way",
        ),
        *_places(judged),
        *_repeats(judged),
    ]


def differences(rows: pd.DataFrame) -> list[tuple[str, str, Comparison]]:
    """Compare every two judges by the share of right verdicts on the items that both judged.

    Returns:
        The names of both judges and their comparison. The p-values are adjusted for their number by Holm's method.
    """
    judged = rows[rows["state"] == "judged"]
    rights = judged.assign(right=judged["right"].astype(float))
    shares = rights.pivot_table(
        index="id",
        columns="judge",
        values="right",
    )
    base = _base(judged).groupby(judged["id"]).first()
    compared = []
    for one, other in combinations(rows["judge"].unique(), 2):
        if not {one, other} <= set(shares):
            continue  # a judge without any verdict
        both = shares[[one, other]].dropna()
        groups = list(base.reindex(both.index))
        compared.append((one, other, compare_pairs(both[one], both[other], groups)))
    adjusted = holm([comparison.p_value for _, _, comparison in compared])
    adjusted_comparisons = []
    for (one, other, comparison), p_value in zip(compared, adjusted, strict=True):
        adjusted_comparisons.append((one, other, replace(comparison, p_value=p_value)))
    return adjusted_comparisons


def agreements(rows: pd.DataFrame) -> Iterator[tuple[str, str, RaterAgreement]]:
    """Compare the scores of the first repetition: each judge with the expected scores, and every two judges.

    Yields:
        Task, names of the raters, and their agreement.
    """
    first = rows[rows["repeat"] == 0]
    for task, task_rows in first.groupby("task", sort=False):
        scores = task_rows.pivot(
            index="id",
            columns="judge",
            values="score",
        )
        expected = (
            task_rows.groupby("id")["expected_score"].first().reindex(scores.index)
        )
        ratings = {_EXPECTED: expected, **{judge: scores[judge] for judge in scores}}
        for raters, result in pairwise(ratings, list(scores)):
            yield str(task), raters, result


def _mean(
    name: str,
    values: pd.Series[float],
    rows: pd.DataFrame,
    good: float | None,
    about: str,
) -> Measure:
    """Take the mean of verdicts. Verdicts on variations of an item depend on each other, so they are one cluster."""
    interval = mean_interval(values, list(_base(rows)))
    return _measure(name, interval, good, rows["id"].nunique(), about)


def _measure(
    name: str,
    interval: Interval,
    good: float | None,
    n: int,
    about: str,
) -> Measure:
    return Measure(
        name=name,
        value=interval.mean,
        good=good,
        n=n,
        about=about,
        low=interval.low,
        high=interval.high,
    )


def _difference(
    name: str,
    scores: ArrayLike,
    others: ArrayLike,
    rows: pd.DataFrame,
    about: str,
) -> Measure:
    """Take the mean difference of two scores. It can have either sign, so it has the interval of a comparison."""
    effect = compare_pairs(scores, others, list(_base(rows))).effect
    return _measure(name, effect, 0.0, rows["id"].nunique(), about)


def _base(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the item that each row's item varies, or the item itself."""
    return rows["like"].fillna(rows["id"])


def _gain(
    judged: pd.DataFrame,
    kind: str,
    name: str,
    about: str,
) -> Measure:
    """Measure how much more a judge gives for variations than for the varied items, minus the expected difference."""
    excess = (judged["score"] - judged["expected_score"]).groupby(judged["id"]).mean()
    pairs = judged[judged["kind"] == kind].drop_duplicates("id").dropna(subset="like")
    # `reindex` gives NaN for an item without any verdict.
    gains = (
        excess.reindex(pairs["id"]).to_numpy()
        - excess.reindex(pairs["like"]).to_numpy()
    )
    valid = gains == gains  # NaN is unequal to itself: one of the pair has no verdict
    return _difference(name, gains[valid], np.zeros(valid.sum()), pairs[valid], about)


def _places(judged: pd.DataFrame) -> Iterator[Measure]:
    """Measure the influence of the correct part's position, over the texts with a verdict for every position."""
    variants = judged.dropna(subset="place")
    means_by_text = (
        variants.groupby([_base(variants), "place"])["score"].mean().unstack()
    )
    scores = means_by_text.reindex(columns=PLACES).dropna()
    for position in PLACES:
        name = f"right part at the {position}"
        interval = mean_interval(scores[position])
        about = "score of the same text in it"
        yield _measure(name, interval, None, len(scores), about)
    means = scores.mean()
    spread = means.max() - means.min()
    # Without an interval: the largest of three differences is above 0 even if the position does not matter.
    yield Measure(
        "place matters", spread, 0.0, len(scores), "best place minus worst place"
    )


def _repeats(judged: pd.DataFrame) -> Iterator[Measure]:
    # A single verdict cannot contradict itself.
    several = judged.groupby("id").filter(lambda rows: len(rows) > 1).groupby("id")
    # Verdicts are dictionaries. pandas cannot count them as values.
    same = several["verdict"].agg(
        lambda verdicts: float(all(verdict == verdicts.iloc[0] for verdict in verdicts))
    )
    interval = mean_interval(same.astype(float))
    about = "share of items with the same verdict in all repeats"
    yield _measure("same verdict again", interval, 1.0, interval.n, about)
    interval = mean_interval(several["score"].std().astype(float))
    about = "standard deviation of an item's scores"
    yield _measure("score varies", interval, 0.0, interval.n, about)


_KINDS = "Score by kind of answer"
_PANELS = {
    0.0: "Biases and variation (perfect: 0)",
    1.0: "Correct and consistent (perfect: 1)",
}
"""Titles of the panels of measures, by the value of a perfect judge."""

_STEP = 18


def plot_judges(rows: pd.DataFrame) -> Spec:
    """Return the plot of all judges as a Vega-Lite specification with its data."""
    points: list[Spec] = []
    for judge, of_judge in rows.groupby("judge", sort=False):
        # Without the number of verdicts, missing points would have no explanation.
        label = f"{judge}: {(of_judge['state'] == 'judged').sum()} of {len(of_judge)} judged"
        table = by_kind(of_judge)
        scores = zip(table.index, table["score"], table["expected_score"], strict=True)
        kinds = []
        for kind, score, expected in scores:
            kinds.append(_point(str(kind).replace("_", " "), score, expected=expected))
        panels = {_KINDS: kinds, **{title: [] for title in _PANELS.values()}}
        for measure in measures(of_judge):
            if measure.good in _PANELS:
                panels[_PANELS[measure.good]].append(
                    _point(measure.name, measure.value, measure.low, measure.high)
                )
        for task, raters, compared in agreements(of_judge):
            if raters.startswith(f"{_EXPECTED} / "):
                alpha = compared.alpha
                name = f"agreement (alpha), {task}"
                panels[_PANELS[1.0]].append(
                    _point(name, alpha.value, alpha.low, alpha.high)
                )
        for panel, panel_points in panels.items():
            for point in panel_points:
                points.append({**point, "judge": label, "panel": panel})
    drawn = []
    for title in (_KINDS, *_PANELS.values()):
        smallest = -1 if title in _PANELS.values() else 0
        of_panel = [point for point in points if point["panel"] == title]
        drawn.append(_panel(title, smallest, of_panel))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "datasets": {"points": points},
        "data": {"name": "points"},
        "hconcat": drawn,
    }


def _point(
    row: str,
    value: float,
    low: float = math.nan,
    high: float = math.nan,
    expected: float = math.nan,
) -> Spec:
    numbers = {"value": value, "low": low, "high": high, "expected": expected}
    row_of_plot: Spec = {"row": row}
    for name, number in numbers.items():
        # JSON has no NaN.
        row_of_plot[name] = None if math.isnan(number) else float(number)
    return row_of_plot


def _panel(title: str, smallest: int, points: list[Spec]) -> Spec:
    return judge_panel(
        title,
        smallest=smallest,
        largest=max([1, *(point["value"] or 0 for point in points)]),
        rows=list(dict.fromkeys(point["row"] for point in points)),
        judges=list(dict.fromkeys(point["judge"] for point in points)),
        height=_STEP * len(points),
    )
