"""Tests with a largest number of values keep their error, and find what a test of a fixed number would find."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from helm_longctx.results.statistics.sequential import (
    DeadlineTest,
    Outcomes,
    collect_outcomes,
)

MOST = 57
ERROR = 0.05


def rate(
    expected: Outcomes, threshold: float, chance: float, rounds: int = 400
) -> tuple[float, float]:
    """Return how often right and wrong answers are found to be above a threshold, and the mean number of answers."""
    random = np.random.default_rng(1)
    count = 0
    counts = 0
    for row in random.random((rounds, MOST)) < chance:
        test = DeadlineTest(expected, -threshold, MOST, ERROR)
        for answer in row:
            if test.is_above:
                break
            test.add(float(answer) - threshold)
        count += test.is_above
        counts += test.count
    return count / rounds, counts / rounds


@pytest.mark.parametrize(
    ("threshold", "chance"), [(0.3, 0.5), (0.6, 0.8), (0.78, 0.98)]
)
def test_the_error_is_kept_and_the_power_is_nearly_the_largest(
    threshold: float, chance: float
) -> None:
    """The test finds what the most powerful test of 57 answers finds, less 1 %, with at most its error of 5 %."""
    expected = collect_outcomes([1 - threshold, -threshold], [chance, 1 - chance])
    needed = next(
        number
        for number in range(MOST + 1)
        if binom.sf(number - 1, MOST, threshold) <= ERROR
    )
    largest = binom.sf(needed - 1, MOST, chance)
    error_rate, count = rate(expected, threshold, chance)
    assert error_rate >= largest - 0.01 - 0.03  # 0.03 is the noise of 400 rounds
    assert count < 0.75 * MOST
    assert rate(expected, threshold, threshold)[0] <= ERROR + 0.025


@pytest.mark.parametrize(("lost", "passes"), [(0.2, 0.0499), (0.1, 0.279), (0.0, 1)])
def test_reliable_models(lost: float, passes: float) -> None:
    """If no answer varies, the probability to pass is exactly known: 4.99 % for a model that lost a fifth of its questions."""
    loss = 0.2
    test = DeadlineTest(collect_outcomes([loss], [1.0]), loss - 1, MOST, ERROR)
    # The probability of each share of the goal, after each question.
    chances = {test.share: 1.0}
    passed = 0.0
    for count in range(MOST):
        shares = np.array(list(chances))
        after: dict[float, float] = defaultdict(float)
        for value, chance in ((loss, 1 - lost), (loss - 1, lost)):
            following = test.next_shares(shares, count, value)
            for share, new_share in zip(chances, following.round(12), strict=True):
                after[float(new_share)] += chance * chances[share]
        passed += sum(chance for share, chance in after.items() if share >= 1)
        chances = {share: chance for share, chance in after.items() if 0 < share < 1}
        if not chances:
            break
    assert passed == pytest.approx(passes, abs=0.001)


def test_a_wrong_expectation_costs_no_certainty() -> None:
    """The error is kept if the answers are distributed in another way than expected."""
    expected = collect_outcomes([0.7, -0.3], [0.9, 0.1])
    assert rate(expected, 0.3, 0.3)[0] <= ERROR + 0.025
    graded = np.random.default_rng(2).choice(
        [0.0, 0.5, 1.0], (400, MOST), p=[0.5, 0.4, 0.1]
    )
    count = 0
    for row in graded:
        test = DeadlineTest(expected, -0.3, MOST, ERROR)
        for score in row:
            test.add(float(score) - 0.3)
        count += test.is_above
    assert count / 400 <= ERROR + 0.025


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.floats(-0.3, 0.7), max_size=70))
def test_the_wealth_is_never_negative_and_a_decision_stays(values: list[float]) -> None:
    """Any values within their bounds leave a wealth of at least 0, and nothing changes after the decision or the end."""
    test = DeadlineTest(collect_outcomes([0.7, -0.3], [0.5, 0.5]), -0.3, MOST, ERROR)
    was_above = False
    for value in values:
        test.add(value)
        assert test.share >= 0
        assert test.is_above or not was_above
        was_above = test.is_above
    assert test.count <= MOST


def test_the_soonest_decision() -> None:
    """The number of further values that can decide is right, and counting changes nothing."""
    test = DeadlineTest(collect_outcomes([0.7, -0.3], [0.5, 0.5]), -0.3, MOST, ERROR)
    share = test.share
    needed = test.count_until_sure(0.7, MOST)
    assert (test.share, test.count) == (share, 0)
    for number in range(needed):
        assert not test.is_above, number
        test.add(0.7)
    assert test.is_above
    assert (
        DeadlineTest(
            collect_outcomes([0.7, -0.3], [0.5, 0.5]), -0.3, MOST, ERROR
        ).count_until_sure(0, 9)
        == 9
    )


def test_values_that_are_near_are_one() -> None:
    """Outcomes that are nearly equal are taken together, with their mean and their probability."""
    outcomes = collect_outcomes([0.51, 0.53, -0.48], [1, 1, 2])
    assert outcomes.values == (-0.48, 0.52)
    assert outcomes.chances == (0.5, 0.5)
    # Two values are exact, because a stake that misses the goal by little needs one more value.
    assert collect_outcomes([1 / 3, -2 / 3], [0.123, 0.877]).values == (-2 / 3, 1 / 3)
    assert collect_outcomes([1 / 3, -2 / 3, 0], [1, 1, 1]).values == (-0.67, 0, 0.33)
