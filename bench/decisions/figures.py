"""What the rooms of bench/decisions share: a simulated figure, the claim that it belongs to, and its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Figure:
    """A simulated share of decisions, with what is claimed about it.

    Args:
        case: what was simulated.
        claim: what is claimed, such as `at most 5 %`.
        share: the share of rounds.
        error: the standard error of the simulation.
        rounds: number of rounds.
        note: what else was seen, such as the power.
    """

    case: str
    claim: str
    share: float
    error: float
    rounds: int
    note: str = ""

    def cells(self) -> list[str]:
        """Return the cells of a row of the table in docs/statistics.md."""
        share = f"{100 * self.share:.1f} ± {100 * self.error:.1f} %"
        return [self.case, self.claim, share, f"{self.rounds:,}", self.note]


def figure(case: str, claim: str, hits: ArrayLike, note: str = "") -> Figure:
    """Return the share of independent rounds.

    Args:
        hits: shape (rounds,): whether the decision was made in each round.
    """
    values = np.asarray(hits, dtype=float)
    share = float(values.mean())
    # One more round of each kind: a share of 0 is not exact.
    smoothed = (values.sum() + 1) / (len(values) + 2)
    error = math.sqrt(smoothed * (1 - smoothed) / len(values))
    return Figure(
        case=case, claim=claim, share=share, error=error, rounds=len(values), note=note
    )


def share_figure(
    case: str, claim: str, share: float, rounds: int, note: str = ""
) -> Figure:
    """Return a share of independent rounds that was counted elsewhere."""
    hits = np.arange(rounds) < round(share * rounds)
    return figure(case, claim, hits, note)


def clustered_figure(
    case: str, claim: str, shares: Sequence[float], rounds_of_each: int, note: str = ""
) -> Figure:
    """Return the mean of shares, each of rounds that have some draws in common."""
    values = np.asarray(shares, dtype=float)
    share = float(values.mean())
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    if share in (0.0, 1.0):
        # Equal shares are not exact either.
        error = figure(case, claim, values).error
    return Figure(
        case=case,
        claim=claim,
        share=share,
        error=error,
        rounds=rounds_of_each * len(values),
        note=note,
    )
