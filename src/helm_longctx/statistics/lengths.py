"""Scores over lengths: the drop, the effective length, and scores above a floor."""

from __future__ import annotations

from collections.abc import Mapping

NOLIMA_SHARE = 0.85
"""Share of the score at the shortest length below which NoLiMa calls a length not effective (arXiv 2502.05167)."""


def effective_length(scores: Mapping[int, float], threshold: float) -> int | None:
    """Return the longest length up to which every score is at least the threshold; None if the first is below it.

    Args:
        scores: score by length.
    """
    longest = None
    for length in sorted(scores):
        if not scores[length] >= threshold:
            break
        longest = length
    return longest


def share_of_shortest(scores: Mapping[int, float], share: float = NOLIMA_SHARE) -> float:
    """Return NoLiMa's threshold: a share of the score at the shortest length."""
    return share * scores[min(scores)]


def drop(scores: Mapping[int, float]) -> float:
    """Return the score at the shortest length minus that at the longest."""
    return scores[min(scores)] - scores[max(scores)]


def above_floor(score: float, floor: float) -> float:
    """Return the share of what is above a floor that a score reaches: 0 at the floor, 1 at a perfect score."""
    return (score - floor) / (1 - floor)
