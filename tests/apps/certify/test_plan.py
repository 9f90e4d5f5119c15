"""Tests of what a certificate can cost, and of what it can find."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist

import pytest

from helm_longctx.apps.certify.command import (
    _keep_design,
    plan_lengths,
    questions_for,
)
from helm_longctx.apps.certify.search import Design
from helm_longctx.models.apis.prices import Prices
from helm_longctx.tasks.answer import Usage

BUDGETS = {"recall": 20, "graph": 40, "count": 31}


def prices(price: int) -> Prices:
    """Return prices of so many dollars for each token."""

    def of(usage: Usage) -> Decimal:
        return Decimal(price * (usage.input_tokens + usage.output_tokens))

    return Prices("test", None, of, None)


@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("price", [0, 2])
def test_the_plan_counts_and_prices_all_questions(kinds: int, price: int) -> None:
    """Each kind has 10 questions without a text, and `first` in each text at the shortest length.

    At most, all questions at the claim are about one kind. Each question costs its length and the mean budget. A server
    whose tokens are free costs nothing, which is not the same as an unknown price.
    """
    budgets: Mapping[str, int] = dict([*BUDGETS.items()][:kinds])
    design = Design(8192, 1024, tuple(budgets), most=30, texts=4)
    plans = plan_lengths(design, budgets, prices(price))
    assert [plan.length for plan in plans] == [0, 1024, 8192]
    first = max(6, math.ceil(30 / kinds))
    no_text, shortest, claim = plans
    assert (no_text.fewest, no_text.most) == (10 * kinds, 10 * kinds)
    assert (shortest.fewest, shortest.most) == (
        4 * first * kinds,
        4 * (first * (kinds - 1) + 30),
    )
    assert claim.most == 30
    assert 0 < claim.fewest < 30
    budget = math.ceil(sum(budgets.values()) / kinds)
    for plan in plans:
        of_one = price * (max(plan.length, 1) + budget)
        assert plan.dollars == (plan.fewest * of_one, plan.most * of_one)
    assert all(plan.dollars is None for plan in plan_lengths(design, budgets, None))


@pytest.mark.parametrize("error", [0.05, 0.2])
@pytest.mark.parametrize("loss", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("score", [0.35, 0.5, 0.8, 0.98])
def test_the_questions_for_a_loss(score: float, loss: float, error: float) -> None:
    """The larger number of two tests of a mean counts: of a model without the loss, and of one with it, with 13 % more.

    The second test has the error that the tests of single kinds leave, 99 %.
    """
    quantile = NormalDist().inv_cdf
    lost = score - loss
    of_score, of_lost = (
        math.sqrt(max(value * (1 - value), 0.01)) for value in (score, lost)
    )
    above = (quantile(1 - error) * of_lost + quantile(0.9) * of_score) / loss
    below = (quantile(1 - 0.99 * error) * of_score + quantile(0.9) * of_lost) / loss
    # A kind has to be 20 points above what the loss leaves.
    is_measured = score > loss + 0.2
    assert questions_for(score, loss, error) == (
        math.ceil(1.13 * max(above, below) ** 2) if is_measured else None
    )


def test_a_certificate_without_a_seed_draws_one(tmp_path: Path) -> None:
    """Certificates of two folders ask other questions, and the same command asks the same ones again."""
    design = Design(4096, 1024, ("recall",))
    folders = (tmp_path / "a", tmp_path / "a", tmp_path / "b")
    first, again, other = [
        _keep_design(folder, "m", design, None).seed for folder in folders
    ]
    assert first == again
    assert abs(first - other) >= 1000
