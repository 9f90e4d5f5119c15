"""Sequential tests and intervals keep their error although somebody looks after each score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from helm_longctx.results.statistics.intervals import mean_interval
from helm_longctx.results.statistics.sequential import (
    ThresholdDecision,
    count_until_decision,
    decide,
    sequential_interval,
)

SCORES_OF_ANY_KIND = arrays.arrays(float, st.integers(0, 60), elements=st.floats(0, 1))


def walk(values: np.ndarray, threshold: float, error: float) -> ThresholdDecision:
    """Look after each value, as a sampler does, and stop at the first decision."""
    for n in range(len(values) + 1):
        decision = decide(values[:n], threshold, error)
        if decision is not ThresholdDecision.OPEN:
            return decision
    return ThresholdDecision.OPEN


@settings(max_examples=60, deadline=None)
@given(values=SCORES_OF_ANY_KIND, threshold=st.floats(0.05, 0.95))
def test_more_values_never_change_a_decision(
    values: np.ndarray, threshold: float
) -> None:
    """The decision about all values is the first decision of somebody who looks after each value."""
    assert decide(values, threshold) is walk(values, threshold, 0.05)


@settings(max_examples=60, deadline=None)
@given(values=SCORES_OF_ANY_KIND, cut=st.integers(0, 60))
def test_intervals_shrink(values: np.ndarray, cut: int) -> None:
    """The interval of more values lies in the interval of the first ones, and both are in 0…1."""
    first = sequential_interval(values[:cut])
    whole = sequential_interval(values)
    assert 0 <= first.low <= whole.low + 1e-9
    assert whole.high - 1e-9 <= first.high <= 1


@settings(max_examples=60, deadline=None)
@given(values=SCORES_OF_ANY_KIND, threshold=st.floats(0.05, 0.95))
def test_the_interval_excludes_what_the_test_rejects(
    values: np.ndarray, threshold: float
) -> None:
    """An end of the interval passes the threshold if and only if the test with half of the error decides so."""
    interval = sequential_interval(values, 0.1)
    decision = decide(values, threshold, 0.05)
    if interval.low > threshold + 1e-9:
        assert decision is not ThresholdDecision.OPEN
    if decision is ThresholdDecision.ABOVE:
        assert interval.low >= threshold - 1e-9
    if decision is ThresholdDecision.BELOW:
        assert interval.high <= threshold + 1e-9


@settings(max_examples=40, deadline=None)
@given(values=SCORES_OF_ANY_KIND, threshold=st.floats(0.05, 0.95))
def test_scores_and_their_complements_decide_alike(
    values: np.ndarray, threshold: float
) -> None:
    """If each score becomes 1 minus the score, above becomes below."""
    opposite = {
        ThresholdDecision.ABOVE: ThresholdDecision.BELOW,
        ThresholdDecision.BELOW: ThresholdDecision.ABOVE,
        ThresholdDecision.OPEN: ThresholdDecision.OPEN,
    }
    assert decide(1 - values, 1 - threshold) is opposite[decide(values, threshold)]


@settings(max_examples=40, deadline=None)
@given(values=SCORES_OF_ANY_KIND)
def test_both_ends_of_an_interval_are_alike(values: np.ndarray) -> None:
    """The interval of complements is the mirrored interval, so the upper end has the error of the lower one."""
    interval = sequential_interval(values)
    mirrored = sequential_interval(1 - values)
    assert mirrored.low == pytest.approx(1 - interval.high, abs=1e-6)
    assert mirrored.high == pytest.approx(1 - interval.low, abs=1e-6)
    assert interval.low <= interval.high
    if values.size:
        assert (
            decide(values, min(interval.high + 1e-3, 0.999), 0.025)
            is ThresholdDecision.BELOW
            or interval.high > 0.998
        )


@pytest.mark.parametrize("mean", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["right or wrong", "graded", "rare half"])
def test_the_error_is_kept_with_looks_after_each_score(mean: float, kind: str) -> None:
    """In 1,000 rounds of up to 300 looks, at most 6.5 % exclude the true mean at any time.

    The same looks with an interval for a fixed size are wrong in more than 15 % of the rounds.
    """
    random = np.random.default_rng(round(1000 * mean))
    rounds = 1000
    draws = random.random((rounds, 300))
    if kind == "right or wrong":
        draws = (draws < mean).astype(float)
    elif kind == "graded":
        draws = random.beta(2 * mean, 2 * (1 - mean), draws.shape)
    else:
        draws = np.where(
            draws < min(mean, 1 - mean) * 2, 0.5, 0.0 if mean <= 0.5 else 1.0
        )
    wrong = sum(decide(row, mean, 0.025) is not ThresholdDecision.OPEN for row in draws)
    assert wrong <= 0.065 * rounds
    if kind == "right or wrong" and mean == 0.5:
        naive = sum(
            any(
                not interval.low <= mean <= interval.high
                for interval in map(mean_interval, _prefixes(row))
            )
            for row in draws[:100]
        )
        assert naive > 15


def _prefixes(row: np.ndarray) -> list[np.ndarray]:
    return [row[:n] for n in range(10, 300, 5)]


def test_the_error_of_paired_differences_is_kept() -> None:
    """Two equally good models on the same questions are told apart in at most 6.5 % of 1,000 rounds, with both sides."""
    random = np.random.default_rng(7)
    hard = random.random((1000, 200))
    first, second = (
        ((hard + random.random(hard.shape)) / 2 < 0.6).astype(float) for _ in range(2)
    )
    wrong = sum(
        decide((1 + row) / 2, 0.5, 0.025) is not ThresholdDecision.OPEN
        for row in first - second
    )
    assert wrong <= 65
    assert decide(np.full(20, 0.95), 0.5) is ThresholdDecision.ABOVE
    assert decide(np.full(60, 0.6), 0.75) is ThresholdDecision.BELOW


def test_samples_are_small_if_the_answer_is_clear() -> None:
    """Scores of 1 decide against 0.7 at 1 % after 17 scores; no test of right answers can do so before the 13th."""
    assert math.ceil(math.log(0.01) / math.log(0.7)) == 13
    first = next(
        n
        for n in range(100)
        if decide(np.ones(n), 0.7, 0.01) is ThresholdDecision.ABOVE
    )
    assert first == 17
    assert (
        next(
            n
            for n in range(100)
            if decide(np.zeros(n), 0.7, 0.01) is ThresholdDecision.BELOW
        )
        == 5
    )


@settings(max_examples=60, deadline=None)
@given(
    values=arrays.arrays(float, st.integers(0, 20), elements=st.floats(0, 1)),
    threshold=st.floats(0.2, 0.8),
)
def test_no_fewer_scores_can_decide(values: np.ndarray, threshold: float) -> None:
    """The returned number of further scores decides if all of them are 1 or 0, and one score fewer never decides."""
    count = count_until_decision(values, threshold, 100)
    ends = [np.concatenate([values, np.full(count, end)]) for end in (0.0, 1.0)]
    if decide(values, threshold) is not ThresholdDecision.OPEN:
        assert count == 0
    elif count < 100:
        assert any(decide(end, threshold) is not ThresholdDecision.OPEN for end in ends)
        assert all(
            decide(end[:-1], threshold) is ThresholdDecision.OPEN for end in ends
        )


def test_an_interval_becomes_narrow() -> None:
    """Sampling can stop when the interval is narrow enough; scores that vary less need fewer of them."""
    random = np.random.default_rng(3)
    binary = (random.random(3000) < 0.5).astype(float)
    graded = random.uniform(0.45, 0.55, 3000)
    early, interval, narrow = map(
        sequential_interval, (binary[:500], binary, graded[:150])
    )
    assert early.high - early.low > 0.1
    assert interval.high - interval.low <= 0.1
    assert narrow.high - narrow.low <= 0.1
    assert interval.low < 0.5 < interval.high
    assert interval.n == 3000
    assert interval.mean == pytest.approx(binary.mean())


def test_edges() -> None:
    """No value decides nothing, and bad arguments have errors that name them."""
    empty = sequential_interval([])
    assert (empty.low, empty.high, empty.n) == (0.0, 1.0, 0)
    assert decide([], 0.5) is ThresholdDecision.OPEN
    assert sequential_interval([0.0] * 50).low == 0.0
    assert sequential_interval([1.0] * 50).high == 1.0
    for values, threshold, error, message in (
        ([1.2], 0.5, 0.05, "between 0 and 1"),
        ([math.nan], 0.5, 0.05, "between 0 and 1"),
        ([1.0], 1.0, 0.05, "threshold 1.0"),
        ([1.0], 0.5, 0.0, "error 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            decide(values, threshold, error)
