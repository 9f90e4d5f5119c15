"""Scores over lengths: the drop, the effective length, and scores above a floor."""

from __future__ import annotations

import math
from collections.abc import Mapping

from helm_longctx.statistics.intervals import Interval

RULER_THRESHOLD = 0.856
"""The score of Llama-2-7B at 4k over RULER's 13 tasks, below which RULER calls a length not effective (arXiv
2404.06654). It means something for these tasks only."""

NOLIMA_SHARE = 0.85
"""Share of the score at the shortest length below which a length is not effective, after NoLiMa (arXiv 2502.05167)."""


def effective_length(scores: Mapping[int, float], threshold: float = RULER_THRESHOLD) -> int | None:
    """Return the longest length at which the score is at least the threshold, as RULER does; None if there is none.

    Args:
        scores: score by length.
    """
    return max((length for length, score in scores.items() if score >= threshold), default=None)


def share_of_shortest(scores: Mapping[int, float], share: float = NOLIMA_SHARE) -> float:
    """Return the threshold that is a share of the score at the shortest length."""
    return share * scores[min(scores)]


def drop(intervals: Mapping[int, Interval]) -> Interval:
    """Return the score at the shortest length minus that at the longest.

    Each end combines the distances to the ends of both, as in `mean_of_means` (Zou and Donner 2008). That takes the
    scores as independent. If the same questions are asked at both lengths, the interval is too wide rather than too
    narrow.
    """
    first, last = intervals[min(intervals)], intervals[max(intervals)]
    mean = first.mean - last.mean
    below = math.hypot(first.mean - first.low, last.high - last.mean)
    above = math.hypot(first.high - first.mean, last.mean - last.low)
    return Interval(mean, mean - below, mean + above, first.n + last.n)


def above_floor(score: float, floor: float) -> float:
    """Return the share of what is above a floor that a score reaches: 0 at the floor, 1 at a perfect score.

    A score below the floor is negative; if the floor is perfect, nothing is above it and the result is NaN.
    """
    return (score - floor) / (1 - floor) if floor < 1 else math.nan
