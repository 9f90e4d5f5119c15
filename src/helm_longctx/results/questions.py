"""The values of a task's answers by question, and their mean as the scores are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from helm_longctx.runs.scores import InstanceScore


class Value(NamedTuple):
    """A value of an answer, with its cluster and its instance."""

    value: float
    group: str
    instance: str


def values_of(rows: Iterable[InstanceScore], metric: str = "") -> list[Value]:
    """Return a metric of answers, without answers that do not have it.

    Args:
        metric: the metric; empty for the score.
    """
    found = ((row, row.values.get(metric) if metric else row.score) for row in rows)
    return [Value(value, row.group, row.instance) for row, value in found if value is not None]


def mean_over_questions(values: Sequence[Value]) -> float:
    """Return the mean over questions of their means over repeats, as HELM's statistics; NaN without a value."""
    questions: dict[str, list[float]] = {}
    for each in values:
        questions.setdefault(each.instance, []).append(each.value)
    return fmean(map(fmean, questions.values())) if questions else math.nan
