"""Says what a certificate can cost before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helm_longctx.models.apis.prices import Prices
from helm_longctx.models.apis.usage import Usage
from helm_longctx.results.certificates.search import NO_TEXT, Design
from helm_longctx.results.statistics.sequential import Decision, decide


@dataclass(frozen=True)
class PlannedLength:
    """The questions of all kinds at one length.

    Args:
        fewest: number of questions if all answers are right, so that only the shortest length and the claim are asked.
        most: largest number of questions.
        dollars: price of `fewest` and of `most`; None if the price is not known.
    """

    length: int
    fewest: int
    most: int
    dollars: tuple[float, float] | None


def plan_lengths(design: Design, budgets: Mapping[str, int], prices: Prices | None) -> list[PlannedLength]:
    """Return the questions at each length.

    Args:
        budgets: the output budget of each kind, in tokens.
    """
    counts, error = range(1, design.most), design.error_at(design.claim)
    right = next((n for n in counts if decide([1.0] * n, design.share, error) is Decision.ABOVE), design.most)
    plans = []
    for length in design.lengths:
        is_first = length == design.shortest
        fewest = design.first if is_first else right if length == design.claim else 0
        most = design.first if is_first else design.most_at(length)
        plans.append(_plan(length, (fewest, most), budgets, prices))
    empty = _plan(0, (NO_TEXT, NO_TEXT), budgets, prices)
    return [empty, *plans]


def most_tested(design: Design) -> tuple[int, ...]:
    """Return the lengths of the most expensive search: the shortest, the claim, and a bisection that always goes up."""
    low, high, tested = 0, len(design.lengths) - 1, [0, len(design.lengths) - 1]
    while high - low > 1:
        low = (low + high) // 2
        tested.append(low)
    return tuple(design.lengths[place] for place in sorted(tested))


def _plan(length: int, counts: tuple[int, int], budgets: Mapping[str, int], prices: Prices | None) -> PlannedLength:
    usages = [Usage(input_tokens=max(length, 1), output_tokens=budget) for budget in budgets.values()]
    of_one = sum(prices.dollars(usage) or 0.0 for usage in usages) if prices else None
    fewest, most = counts
    dollars = None if of_one is None else (fewest * of_one, most * of_one)
    return PlannedLength(length, fewest * len(budgets), most * len(budgets), dollars)
