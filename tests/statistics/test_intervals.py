"""Intervals cover what they say, and mean what they say at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.statistics.intervals import Interval, mean_interval, mean_of_means
from tests.statistics.simulation import Case, cases, coverage, false_positives


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: "-".join(map(str, case)))
def test_intervals_cover(case: Case) -> None:
    """93 to 97 % of them; `bench/intervals.py` takes more rounds and other clusters."""
    rounds = 500
    allowance = 2.6 * math.sqrt(0.95 * 0.05 / rounds)  # what so few rounds vary by
    assert 0.95 - allowance - 0.005 <= coverage(case, rounds, seed=3) <= 0.95 + allowance + 0.005


@pytest.mark.parametrize(
    "case", [Case(0.5, 100, 1, 0, True), Case(0.5, 600, 6, 0.3, True), Case(0.5, 100, 1, 0, False)]
)
def test_false_positives(case: Case) -> None:
    """5 % of equally good models are told apart."""
    assert 0.03 <= false_positives(case, 400, seed=5) <= 0.07


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 5))
def test_an_interval_holds_its_mean(values: list[float], size: int) -> None:
    """It stays in 0…1 and always has a width."""
    interval = mean_interval(values, [number // size for number in range(len(values))])
    assert 0 <= interval.low <= interval.mean <= interval.high <= 1
    assert interval.high - interval.low > 1e-3
    assert interval.n == len(values)


@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_wilson(answers: list[bool]) -> None:
    """Independent right and wrong answers have Wilson's interval, here scipy's."""
    from scipy.stats import binomtest

    expected = binomtest(sum(answers), len(answers)).proportion_ci(method="wilson")
    interval = mean_interval(np.array(answers))
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_a_question_at_six_depths_is_one_question() -> None:
    """Copies of answers add nothing."""
    answers = [1.0] * 40 + [0.0] * 60
    alone = mean_interval(answers)
    copied = mean_interval(answers * 6, list(range(100)) * 6)
    assert copied.high - copied.low == pytest.approx(alone.high - alone.low, rel=0.03)
    assert mean_interval(answers * 6).high < copied.high


def test_values_that_are_no_shares() -> None:
    """They have Student's interval, and a single one has none."""
    from scipy.stats import t

    values = np.array([3.0, 5.0, 10.0, 2.0])
    low, high = t.interval(0.95, 3, values.mean(), values.std(ddof=1) / 2)
    assert (mean_interval(values).low, mean_interval(values).high) == pytest.approx((low, high))
    assert math.isnan(mean_interval([7]).low)
    assert mean_interval([]).n == 0
    assert math.isnan(mean_interval([]).mean)


def test_groups_are_as_many_as_values() -> None:
    """Else they belong to something else."""
    with pytest.raises(ValueError, match="2 groups for 3 values"):
        mean_interval([1, 0, 1], ["a", "b"])


def test_a_mean_of_means() -> None:
    """Half-widths add as squares, each side by itself; a task twice as sure counts no more."""
    mean = mean_of_means([Interval(0.5, 0.4, 0.8, 10), Interval(0.7, 0.7, 0.7, 10)])
    assert (mean.mean, mean.low, mean.high, mean.n) == pytest.approx((0.6, 0.55, 0.75, 20))
    assert math.isnan(mean_of_means([]).mean)
