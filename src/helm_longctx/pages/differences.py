"""Finds which of two models is better and how certain that is, paired by instance if both were run here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

from helm_longctx.pages.results import OVERALL, Board, Place, Values
from helm_longctx.statistics.comparison import SIGNIFICANCE, Comparison, Pairs, compare_parts, holm
from helm_longctx.statistics.intervals import Interval

MOST_PAIRED = 12
"""Number of the user's best models of which every two are tested. Others are compared by their intervals, which is
fast."""


class Difference(NamedTuple):
    """The overall score of a model minus that of another at a length.

    Args:
        effect: the difference with its 95 % interval, -1 to 1.
        is_tied: whether the two cannot be told apart.
        p_value: the p-value of the paired test, adjusted by Holm's method; None if the models share no instances.
        wins, losses, ties: numbers of instances; all zero without a paired test.
    """

    effect: Interval
    is_tied: bool
    p_value: float | None = None
    wins: int = 0
    losses: int = 0
    ties: int = 0

    def reverse(self) -> Difference:
        """Return the same difference with the two models exchanged."""
        effect = Interval(-self.effect.mean, -self.effect.high, -self.effect.low, self.effect.n)
        return self._replace(effect=effect, wins=self.losses, losses=self.wins)


Differences = Mapping[tuple[str, str], Difference]


@cache
def find_differences(board: Board, part: str, length: int | None) -> Differences:
    """Compare every two of the models with a score of a part, in both directions."""
    ranking = board.ranking(length, part)
    pairs = list(combinations([model for model, _ in ranking], 2))
    # A published score has no instances to pair.
    own = [model for model, result in ranking if not result.is_published]
    best = set(own[:MOST_PAIRED])
    paired = {
        pair: found for pair in pairs if best.issuperset(pair) and (found := _compare(board, part, length, *pair))
    }
    p_values = dict(zip(paired, holm([each.p_value for each in paired.values()]), strict=True))
    table: dict[tuple[str, str], Difference] = {}
    for first, second in pairs:
        if comparison := paired.get((first, second)):
            p_value = float(p_values[first, second])
            counts = (comparison.wins, comparison.losses, comparison.ties)
            # Ties are by the adjusted test, not by the interval, so that text, matrix and ranks agree.
            difference = Difference(comparison.effect, p_value >= SIGNIFICANCE, p_value, *counts)
        elif (by_intervals := _compare_intervals(board, part, length, first, second)) is not None:
            difference = by_intervals
        else:
            continue
        table[first, second], table[second, first] = difference, difference.reverse()
    return table


def rank_range(model: str, models: Sequence[str], differences: Differences) -> tuple[int, int]:
    """Return the best and the worst rank that a model can have by the comparisons."""
    sure = [
        difference.effect.mean
        for other in models
        if (difference := differences.get((model, other))) and not difference.is_tied
    ]
    return 1 + sum(effect < 0 for effect in sure), len(models) - sum(effect > 0 for effect in sure)


def _compare(board: Board, part: str, length: int | None, first: str, second: str) -> Comparison | None:
    """Test two models on the instances of a part that both have; None if they share none of a task.

    Tasks have the weights that they have in the part's score: the mean over columns of means over tasks.
    """
    columns = board.columns_at(length) if part == OVERALL else [part]
    pairs = []
    for tasks in (board.tasks_of(column, length) for column in columns):
        for task in tasks:
            ours, theirs = (board.values.get(Place(model, task, length), {}) for model in (first, second))
            pairs.append(_pair(ours, theirs, 1 / (len(columns) * len(tasks))))
    # If a task is missing, the weighted mean would be over other tasks than the score.
    return compare_parts(pairs) if pairs and all(each.groups for each in pairs) else None


def _pair(ours: Values, theirs: Values, weight: float) -> Pairs:
    # The items are sorted, so that the sums have the same last digits each time.
    shared = sorted(ours.keys() & theirs.keys())
    one, two = ([values[key].score or 0.0 for key in shared] for values in (ours, theirs))
    return Pairs(one, two, [ours[key].group for key in shared], weight)


def _compare_intervals(board: Board, part: str, length: int | None, first: str, second: str) -> Difference | None:
    """Compare two scores only by their intervals, as if the models had answered different questions."""
    ours, theirs = board.score(first, part, length), board.score(second, part, length)
    if ours is None or theirs is None:
        return None
    one, two = ours.interval, theirs.interval
    mean = one.mean - two.mean
    # Only the half of each interval on the side of the other score counts.
    down = math.hypot(one.mean - one.low, two.high - two.mean)
    up = math.hypot(one.high - one.mean, two.mean - two.low)
    return Difference(Interval(mean, mean - down, mean + up, min(one.n, two.n)), mean - down <= 0 <= mean + up)
