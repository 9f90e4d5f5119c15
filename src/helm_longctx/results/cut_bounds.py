"""The bounds of a score between which it could be if the token limit had cut no answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from helm_longctx.documents.numbers import amount, percent
from helm_longctx.runs.scores import InstanceScore, Value, values_of

if TYPE_CHECKING:
    from helm_longctx.results.reading import Result

CUT = "output_truncated"
"""The statistic that is 1 for answers that the token limit cut."""

WRONG, LEFT_OUT, BEST = "score_cut_as_wrong", "score_cut_left_out", "score_cut_at_best"
"""The names of the bounds in a result's statistics, and in exports. Tasks without cut answers do not have them."""

VALUES: Mapping[str, float | None] = {WRONG: 0.0, LEFT_OUT: None, BEST: 1.0}
"""The score that a cut answer gets in each of them; None if the answer is left out."""


@dataclass(frozen=True)
class CutBounds:
    """A score, 0 to 1, under three assumptions about the answers that the token limit cut.

    Args:
        wrong: the score if they are wrong.
        left_out: the score of the other answers; NaN if there are none.
        best: the score if they are right.
        share: the share of answers that were cut.
    """

    wrong: float
    left_out: float
    best: float
    share: float

    def contain(self, value: float) -> bool:
        """Whether answers without a limit could have had a score of this value."""
        return self.wrong <= value <= self.best

    @property
    def text(self) -> str:
        """The bounds in percent, for people."""
        without = "unknown" if math.isnan(self.left_out) else percent(self.left_out)
        return (
            f"{amount(100 * self.share)} % of the answers are cut: {percent(self.wrong)} if they are wrong,"
            f" {without} without them, {percent(self.best)} at best"
        )


def bounds(result: Result) -> CutBounds | None:
    """Return the bounds of a score of a task, a category or a whole benchmark.

    All three are the score itself if no answer was cut. Of a mean they are the means of its parts' bounds, so bounds of
    other means, such as over lengths, can be computed in the same way.

    Returns:
        None if there is no score, or if it is not known which answers were cut: of published scores, of HELM's own
        scenarios, and of runs of versions that did not count them.
    """
    if not result.has_score:
        return None
    if result.parts:
        parts = [bounds(part) for part in result.parts if part.has_score]
        known = [part for part in parts if part is not None]
        return _mean(known) if known and len(known) == len(parts) else None
    if result.run is None or not result.run.tasks or CUT not in result.statistics:
        return None
    score, found = result.interval.mean, result.statistics
    wrong, left_out, best = (found[name].interval.mean if name in found else score for name in VALUES)
    # A sum in another order can differ in its last digit.
    return CutBounds(min(wrong, score), left_out, max(best, score), found[CUT].interval.mean)


def find_wide_bounds(result: Result) -> CutBounds | None:
    """Return the bounds of a score if one of them is outside its 95 % interval; else None."""
    found, interval = bounds(result), result.interval
    if found is None or found.wrong == found.best:
        return None
    # The interval of a single answer is not known.
    is_inside = found.wrong >= interval.low and found.best <= interval.high
    return None if is_inside else found


def cut_values(rows: Sequence[InstanceScore], value: float | None, metric: str = "") -> list[Value]:
    """Return a metric of answers, in which each cut answer has another value, or is left out.

    Args:
        value: the value of cut answers; None to leave them out.
        metric: the metric; empty for the score.
    """
    if value is None:
        return values_of((row for row in rows if not row.values.get(CUT)), metric)
    # An answer that lacks the metric has no place in its mean, whatever cut it.
    having = [row for row in rows if (row.values.get(metric) if metric else row.score) is not None]
    return [
        each._replace(value=value) if row.values.get(CUT) else each
        for row, each in zip(having, values_of(having, metric), strict=True)
    ]


def _mean(parts: Sequence[CutBounds]) -> CutBounds:
    columns = zip(*((part.wrong, part.left_out, part.best, part.share) for part in parts), strict=True)
    return CutBounds(*map(fmean, columns))
