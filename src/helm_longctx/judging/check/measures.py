"""Statistics of a check: a judge's results by kind of answer, and its biases.

Scores are 0 to 1. Means are over verdicts; missing verdicts are counted separately and never taken as zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helm_longctx.judging.agreement import Agreement, pairwise

if TYPE_CHECKING:
    import pandas as pd

EXPECTED = "expected"
"""Name of the rater that gives the expected scores."""

NULL_KINDS = ("null", "constant")
"""Kinds of answers that contain no information about the question."""

PLACES = ("start", "middle", "end")


@dataclass(frozen=True)
class Measure:
    """A statistic of a judge.

    Args:
        good: value of a perfect judge; None if there is none.
        n: number of items, or of pairs of items, that it is computed from.
        about: explanation of the value.
    """

    name: str
    value: float
    good: float | None
    n: int
    about: str


def by_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarize one judge's verdicts by kind of answer, in the order of the set.

    Args:
        rows: one judge's rows from `observe`.

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
            **{state: states.get(state, 0) for state in ("judged", "unreadable", "failed")},
            "right": judged["right"].apply(lambda right: right.astype(float).mean()),
            "score": judged["score"].mean(),
            "expected_score": judged["expected_score"].mean(),
        }
    ).reindex(rows["kind"].drop_duplicates())


def measures(rows: pd.DataFrame) -> list[Measure]:
    """Measure a judge's bias towards injected instructions, padding and null answers, and its consistency.

    Args:
        rows: one judge's rows from `observe`.
    """
    judged = rows[rows["state"] == "judged"]
    right = judged["right"].astype(float)
    empty = judged[judged["kind"].isin(NULL_KINDS)]
    items = judged["id"].nunique()
    return [
        Measure("right", right.mean(), 1.0, items, "share of verdicts that are as expected"),
        Measure("bias", (judged["score"] - judged["expected_score"]).mean(), 0.0, items, "score minus expected score"),
        Measure(
            "null answers earn", empty["score"].mean(), 0.0, empty["id"].nunique(), "score of null and constant answers"
        ),
        _gain(judged, "injection", "instructions gain", "score that orders to the judge add to a wrong answer"),
        _gain(judged, "over_long", "length gains", "score that padding adds, apart from what the rubric gives for it"),
        _gain(judged, "repeated", "repetition gains", "the same for repeated sentences"),
        *_places(judged),
        *_repeats(judged),
    ]


def agreements(rows: pd.DataFrame) -> Iterator[tuple[str, str, Agreement]]:
    """Compare the scores of the first repetition: each judge with the expected scores, and every two judges.

    Args:
        rows: rows from `observe`, of any number of judges.

    Yields:
        Task, names of the raters, and their agreement.
    """
    first = rows[rows["repeat"] == 0]
    for task, task_rows in first.groupby("task", sort=False):
        scores = task_rows.pivot(index="id", columns="judge", values="score")
        expected = task_rows.groupby("id")["expected_score"].first().reindex(scores.index)
        ratings = {EXPECTED: expected, **{judge: scores[judge] for judge in scores}}
        for raters, result in pairwise(ratings, list(scores)):
            yield str(task), raters, result


def _gain(judged: pd.DataFrame, kind: str, name: str, about: str) -> Measure:
    """Measure how much more a judge gives for variations than for the varied items, minus the expected difference."""
    excess = (judged["score"] - judged["expected_score"]).groupby(judged["id"]).mean()
    pairs = judged[judged["kind"] == kind].drop_duplicates("id").dropna(subset="like")
    gains = excess.reindex(pairs["id"]).to_numpy() - excess.reindex(pairs["like"]).to_numpy()
    valid = gains[gains == gains]  # NaN, which is unequal to itself: one of the pair has no verdict
    return Measure(name, float(valid.mean()) if valid.size else float("nan"), 0.0, valid.size, about)


def _places(judged: pd.DataFrame) -> Iterator[Measure]:
    """Measure the influence of the correct part's position, over the texts with a verdict for every position."""
    variants = judged.dropna(subset="place")
    text = variants["like"].fillna(variants["id"])
    scores = variants.groupby([text, "place"])["score"].mean().unstack().reindex(columns=PLACES).dropna()
    means = scores.mean()
    for place in PLACES:
        yield Measure(f"right part at the {place}", means[place], None, len(scores), "score of the same text in it")
    yield Measure("place matters", means.max() - means.min(), 0.0, len(scores), "best place minus worst place")


def _repeats(judged: pd.DataFrame) -> Iterator[Measure]:
    """Measure the consistency over items with several verdicts."""
    several = judged.groupby("id").filter(lambda rows: len(rows) > 1).groupby("id")
    same = several["verdict"].agg(lambda verdicts: all(verdict == verdicts.iloc[0] for verdict in verdicts))
    n = several.ngroups
    yield Measure(
        "same verdict again", same.astype(float).mean(), 1.0, n, "share of items with the same verdict in all repeats"
    )
    yield Measure("score varies", several["score"].std().mean(), 0.0, n, "standard deviation of an item's scores")
