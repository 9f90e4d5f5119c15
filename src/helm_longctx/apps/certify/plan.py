"""Says what a certificate can cost, and what it can find, before anything is sent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from helm_longctx.apps.certify.search import ABOVE_FLOOR, KIND_SHARE, NO_TEXT, Design, plan_tests
from helm_longctx.models.apis.prices import Prices
from helm_longctx.models.apis.usage import Usage

POWER = 0.9
"""Share of certificates that decide with `questions_for` questions."""

_MORE = 1.13
"""How many times as many questions as a test of a fixed number with known expected scores needs. Measured by
`bench/decisions_certify.py`: the tests look after each answer, and the scores at the shortest length are estimated."""


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
    """Return the questions without a text, at the shortest length, and at the claim.

    All longer prompts together have at most the tokens of the largest number of questions at the claim.

    Args:
        budgets: the output budget of each kind, in tokens.
    """
    kinds, first = len(budgets), design.first
    above, _ = plan_tests([[(1.0, 1.0)] * first * design.texts] * kinds, design.loss, design.most, design.error)
    # A kind of which more questions are drawn has more of them at the shortest length, too.
    counts = {
        0: (NO_TEXT * kinds, NO_TEXT * kinds),
        design.shortest: (first * kinds * design.texts, (first * (kinds - 1) + design.most) * design.texts),
        design.claim: (above.count_until_sure(design.loss, design.loss - 1, design.most), design.most),
    }
    budget = math.ceil(sum(budgets.values()) / kinds)
    return [_plan(length, ends, budget, prices) for length, ends in counts.items()]


def questions_for(score: float, loss: float, error: float) -> int | None:
    """Return about how many questions at the claim decide about a loss in `POWER` of certificates.

    It is the larger one of the numbers for a model without a loss and for one with this loss, by the normal
    approximation. Answers are right or wrong, and answers at different lengths are independent.

    Args:
        score: the score at the shortest length.
        loss: the loss that is allowed, 0 to 1.
        error: probability of a wrong decision.

    Returns:
        The number; None if kinds with this score cannot be measured.
    """
    from scipy.special import ndtri

    def count(true: float, other: float, of_error: float) -> float:
        deviations = (math.sqrt(max(each * (1 - each), 0.01)) for each in (other, true))
        parts = zip((-ndtri(of_error), ndtri(POWER)), deviations, strict=True)
        return float(sum(quantile * deviation for quantile, deviation in parts) / loss) ** 2

    if score <= loss + ABOVE_FLOOR:
        return None
    lost = score - loss
    return math.ceil(_MORE * max(count(score, lost, error), count(lost, score, error * (1 - KIND_SHARE))))


def _plan(length: int, counts: tuple[int, int], budget: int, prices: Prices | None) -> PlannedLength:
    usage = Usage(input_tokens=max(length, 1), output_tokens=budget)
    of_one = prices.dollars(usage) or 0.0 if prices else None
    fewest, most = counts
    dollars = None if of_one is None else (fewest * of_one, most * of_one)
    return PlannedLength(length, fewest, most, dollars)
