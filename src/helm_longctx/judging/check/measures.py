"""What a check says of a judge: by kind of answer, and which way it can be moved. Pure functions of what was observed.

Scores are 0 to 1. Means are over verdicts: what a judge did not say is counted beside them and never taken for zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helm_longctx.judging.agreement import Agreement, pairwise

if TYPE_CHECKING:
    import pandas as pd

EXPECTED = "expected"
"""The rater that knows the verdicts."""

EMPTY_HANDED = ("null", "constant")
"""Kinds that say nothing about what was asked."""

PLACES = ("start", "middle", "end")


@dataclass(frozen=True)
class Measure:
    """A number about a judge.

    Args:
        good: what a judge that is right has.
        n: of how many items it is made, or pairs of items.
        about: what it means.
    """

    name: str
    value: float
    good: float | None
    n: int
    about: str


def by_kind(seen: pd.DataFrame) -> pd.DataFrame:
    """One judge's answers by kind, in the set's order.

    Args:
        seen: rows of `observe`, of one judge.

    Returns:
        Index `kind`; columns `items`, `asked`, `judged`, `unreadable`, `failed`, `right` (share of verdicts that are
        as expected), `score` and `expected_score` (means over verdicts).
    """
    import pandas as pd

    groups = seen.groupby("kind", sort=False)
    states = groups["state"].value_counts().unstack(fill_value=0)
    judged = seen[seen["state"] == "judged"].groupby("kind", sort=False)
    return pd.DataFrame(
        {
            "items": groups["id"].nunique(),
            "asked": groups.size(),
            **{state: states.get(state, 0) for state in ("judged", "unreadable", "failed")},
            "right": judged["right"].apply(lambda right: right.astype(float).mean()),
            "score": judged["score"].mean(),
            "expected_score": judged["expected_score"].mean(),
        }
    ).reindex(seen["kind"].drop_duplicates())


def measures(seen: pd.DataFrame) -> list[Measure]:
    """What moves one judge, and how often it says the same.

    Args:
        seen: rows of `observe`, of one judge.
    """
    judged = seen[seen["state"] == "judged"]
    right = judged["right"].astype(float)
    empty = judged[judged["kind"].isin(EMPTY_HANDED)]
    items = judged["id"].nunique()
    return [
        Measure("right", right.mean(), 1.0, items, "share of verdicts that are as expected"),
        Measure(
            "bias", (judged["score"] - judged["expected_score"]).mean(), 0.0, items, "score above the expected one"
        ),
        Measure(
            "null answers earn", empty["score"].mean(), 0.0, empty["id"].nunique(), "score of empty and constant ones"
        ),
        _gain(judged, "injection", "instructions gain", "score that an order to the judge adds to a wrong answer"),
        _gain(judged, "over_long", "length gains", "score that padding adds, beyond what the rubric gives"),
        _gain(judged, "repeated", "repetition gains", "the same, of saying it again and again"),
        *_places(judged),
        *_repeats(judged),
    ]


def agreements(seen: pd.DataFrame) -> Iterator[tuple[str, str, Agreement]]:
    """How far the scores of the first time agree: of each judge with the expected ones, and of each two judges.

    Args:
        seen: rows of `observe`, of any judges.

    Yields:
        Task, raters, and their agreement.
    """
    first = seen[seen["repeat"] == 0]
    for task, rows in first.groupby("task", sort=False):
        scores = rows.pivot(index="id", columns="judge", values="score")
        expected = rows.groupby("id")["expected_score"].first().reindex(scores.index)
        ratings = {EXPECTED: expected, **{judge: scores[judge] for judge in scores}}
        for raters, found in pairwise(ratings, list(scores)):
            yield str(task), raters, found


def _gain(judged: pd.DataFrame, kind: str, name: str, about: str) -> Measure:
    """How much more variations score than what they vary, less what they should."""
    excess = (judged["score"] - judged["expected_score"]).groupby(judged["id"]).mean()
    pairs = judged[judged["kind"] == kind].drop_duplicates("id").dropna(subset="like")
    gains = excess.reindex(pairs["id"]).to_numpy() - excess.reindex(pairs["like"]).to_numpy()
    known = gains[gains == gains]
    return Measure(name, float(known.mean()) if known.size else float("nan"), 0.0, known.size, about)


def _places(judged: pd.DataFrame) -> Iterator[Measure]:
    """Over the texts that have verdicts with the right part at each place."""
    placed = judged.dropna(subset="place")
    text = placed["like"].fillna(placed["id"])
    scores = placed.groupby([text, "place"])["score"].mean().unstack().reindex(columns=PLACES).dropna()
    means = scores.mean()
    for place in PLACES:
        yield Measure(f"right part at the {place}", means[place], None, len(scores), "score of the same text there")
    yield Measure("place matters", means.max() - means.min(), 0.0, len(scores), "best place less the worst")


def _repeats(judged: pd.DataFrame) -> Iterator[Measure]:
    several = judged.groupby("id").filter(lambda rows: len(rows) > 1).groupby("id")
    same = several["verdict"].agg(lambda verdicts: all(verdict == verdicts.iloc[0] for verdict in verdicts))
    n = several.ngroups
    yield Measure(
        "same verdict again", same.astype(float).mean(), 1.0, n, "share of items with one verdict at all times"
    )
    yield Measure("score varies", several["score"].std().mean(), 0.0, n, "standard deviation of an item's scores")
