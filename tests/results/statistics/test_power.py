"""The power of planned samples is that of the comparisons that decide, and near that of statsmodels where samples are large."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from helm_longctx.results.statistics.comparison import compare_intervals, compare_pairs
from helm_longctx.results.statistics.intervals import Interval, mean_interval
from helm_longctx.results.statistics.power import (
    POWER,
    PairedQuestions,
    Spread,
    count_needed_questions,
    detectable_difference,
    detectable_from,
    paired_spread,
)
from tests.support.simulations import SKEWED_SIZES, Task, power_of_means, power_of_pairs

ROUNDS = 200
"""Rounds of a simulation, whose standard error is 2.8 points."""


def sample(variance: float, n: float, is_paired: bool = False) -> PairedQuestions:
    """Return a sample of independent questions."""
    return PairedQuestions(Spread(variance, 0.0, is_paired), n, n)


@pytest.mark.parametrize("n", [100, 600, 5000])
def test_detectable_differences_are_those_of_statsmodels(n: int) -> None:
    """Detectable differences are a little larger than statsmodels' ones, because the comparisons have steps and pseudo-observations."""
    from statsmodels.stats.power import TTestIndPower, TTestPower

    paired = 0.3 * TTestPower().solve_power(nobs=n, power=POWER, alpha=0.05)
    independent = 0.5 * TTestIndPower().solve_power(nobs1=n, power=POWER, alpha=0.05)
    for planned, expected in (
        (detectable_difference([sample(0.09, n, is_paired=True)]), paired),
        (detectable_difference([sample(0.25, n)]), independent),
    ):
        assert expected < planned < (1.03 + 2 / math.sqrt(n)) * expected


@pytest.mark.parametrize("spread", [Spread(0.25, 0.0, True), Spread(0.2, 0.3, False)])
@pytest.mark.parametrize("difference", [0.01, 0.05, 0.2])
def test_samples_needed(spread: Spread, difference: float) -> None:
    """The number of questions needed is the smallest that detects the difference."""
    needed = count_needed_questions(spread, difference, 2.0)
    assert (
        detectable_difference([PairedQuestions(spread, needed, needed / 2)])
        <= difference + 1e-5
    )
    assert (
        detectable_difference([PairedQuestions(spread, needed - 1, (needed - 1) / 2)])
        > difference
    )


def test_clusters_count_by_their_correlation() -> None:
    """Many clusters count as one question each if their correlation is 1, and their questions count if it is 0."""
    whole, none = (
        detectable_difference([PairedQuestions(Spread(0.25, score, False), 6000, 1000)])
        for score in (1.0, 0.0)
    )
    assert whole == pytest.approx(detectable_difference([sample(0.25, 1000)]), rel=0.02)
    assert none == pytest.approx(detectable_difference([sample(0.25, 6000)]), rel=0.02)
    assert (
        detectable_difference([PairedQuestions(Spread(0.25, 1.0, True), 60, 1)])
        == math.inf
    )
    assert (
        detectable_difference([PairedQuestions(Spread(0.25, 0.5, False), 60, 3.9)])
        == math.inf
    )


def test_the_mean_of_tasks() -> None:
    """The mean of four equal tasks detects about half the difference of one task."""
    for is_paired in (True, False):
        one = detectable_difference([sample(0.2, 400, is_paired)])
        assert detectable_difference(
            [sample(0.2, 400, is_paired)] * 4
        ) == pytest.approx(one / 2, rel=0.03)


def test_models_that_never_differed() -> None:
    """Equal answers in an earlier run, or answers that are all right, do not detect every difference."""
    assert 0.02 < detectable_difference([sample(0.0, 100, is_paired=True)]) < 0.15
    assert 0.03 < detectable_difference([sample(0.0, 100)]) < 0.15


CASES = [
    ("100 questions", Task([1] * 100, 0.0)),
    ("20 clusters of 6", Task([6] * 20, 0.3)),
    ("50 clusters of 20 and 2", Task([20] * 10 + [2] * 40, 0.3)),
]


@pytest.mark.parametrize(("name", "task"), CASES)
@pytest.mark.parametrize("mean", [0.5, 0.9, 0.98])
def test_a_planned_sample_has_its_power(name: str, task: Task, mean: float) -> None:
    """At least four of five comparisons with other questions find the difference, also in unequal clusters (before: 13 to 62 %)."""
    power = power_of_means([task], mean, ROUNDS, np.random.default_rng(4))
    assert power.share >= POWER - 0.07, (name, power)


@pytest.mark.parametrize("mean", [0.5, 0.9, 0.98])
def test_a_planned_mean_of_tasks_has_its_power(mean: float) -> None:
    """A planned mean of 13 tasks of different sizes finds its difference in at least four of five comparisons."""
    tasks = [Task([1] * size, 0.0) for size in SKEWED_SIZES]
    assert (
        power_of_means(tasks, mean, ROUNDS, np.random.default_rng(5)).share
        >= POWER - 0.07
    )


@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_planned_comparison_in_pairs_has_its_power(name: str, task: Task) -> None:
    """At least four of five comparisons with the same questions find the difference."""
    power = power_of_pairs(task, 0.5, ROUNDS, np.random.default_rng(6))
    assert power.share >= POWER - 0.07, (name, power)


def test_small_differences_have_their_power() -> None:
    """Differences of continuous scores are found in at least four of five comparisons, and not much more often."""
    random = np.random.default_rng(8)
    n = 150
    draw = lambda mean: np.clip(random.normal(mean, 0.04, n), -1, 1)  # noqa: E731
    spread = paired_spread(draw(0.0), np.zeros(n), range(n))
    difference = detectable_difference([PairedQuestions(spread, n, n)])
    share = (
        sum(
            compare_pairs(draw(difference), np.zeros(n)).p_value < 0.05
            for _ in range(ROUNDS)
        )
        / ROUNDS
    )
    assert POWER - 0.07 <= share <= 0.93


def test_the_spread_of_pairs() -> None:
    """The spread of earlier runs is the variance of the differences, and their correlation in clusters."""
    spread = paired_spread([1, 1, 1, 1], [1, 1, 0, 0], ["a", "a", "b", "b"])
    assert (spread.variance, spread.correlation, spread.is_paired) == (
        pytest.approx(0.5),
        1.0,
        True,
    )
    assert spread.kurtosis == 2
    assert paired_spread([0.5, 0.25], [0.5, 0.25], [1, 2]).kurtosis is None
    independent = paired_spread([1, 0, 1, 0], [1, 1, 1, 1], [1, 2, 3, 4])
    assert (independent.variance, independent.correlation) == (
        pytest.approx(1 / 3),
        0.0,
    )


@pytest.mark.parametrize(("right", "wrong"), [(80, 20), (200, 200), (5, 45)])
def test_intervals_count_as_their_questions(right: int, wrong: int) -> None:
    """A mean with an interval is compared as the right and wrong answers that have this interval."""
    own = mean_interval([1] * right + [0] * wrong)
    n = right + wrong
    expected = detectable_difference([sample(right * wrong / n**2, n)])
    assert detectable_from(own, own) == pytest.approx(expected, abs=2e-5)


def test_a_difference_from_a_published_mean() -> None:
    """A difference that is found in 80 % of cases is larger than the half width, and smaller from an exact mean."""
    own = mean_interval([1] * 80 + [0] * 20)
    exact = Interval(0.8, math.nan, math.nan, 0)
    published = mean_interval([1] * 400 + [0] * 100)
    ends = [detectable_from(own, sample) for sample in (exact, published, own)]
    assert ends == sorted(ends)
    assert own.mean - own.low < ends[0] < 0.16
    lower = Interval(*(value - ends[1] for value in (own.mean, own.low, own.high)), 100)
    assert compare_intervals(lower, published).p_value < 0.01
    mirrored = Interval(1 - own.mean, 1 - own.high, 1 - own.low, 100)
    assert detectable_from(
        mirrored, Interval(0.2, math.nan, math.nan, 0)
    ) == pytest.approx(ends[0])
    assert detectable_from(mean_interval([1, 1, 0]), published) == math.inf


@pytest.mark.parametrize(
    ("variance", "kurtosis"), [(0.3, None), (0.05, None), (0.01, 6.0)]
)
@pytest.mark.parametrize("n", [20, 150])
def test_a_paired_difference_solves_its_equation(
    variance: float, kurtosis: float | None, n: int
) -> None:
    """The difference d in pairs is z √(s + 2 k s / n) + q √(v / n), with s = (v + d²) / n and the kurtosis k.

    Two pseudo-observations are as large as the others, and of right and wrong answers k is 1 / v.
    """
    normal = NormalDist()
    z = normal.inv_cdf(0.975)
    q = normal.inv_cdf(POWER + 0.02)
    a = z**2 * (1 + 2 * (kurtosis or 1 / variance) / n) / n
    # (d - b)² = a (v + d²), of which the larger root is the difference.
    b = q * math.sqrt(variance / n)
    root = math.sqrt(b**2 - (1 - a) * (b**2 - a * variance)) if a < 1 else math.inf
    expected = (b + root) / (1 - a) if a < 1 else math.inf
    difference = detectable_difference(
        [PairedQuestions(Spread(variance, 0.0, True, kurtosis), n, n)]
    )
    assert difference == pytest.approx(
        expected if expected <= 1 else math.inf, abs=2e-5
    )


@pytest.mark.parametrize("correlation", [0.1, 0.5, 1.0])
def test_a_difference_in_clusters_has_no_steps(correlation: float) -> None:
    """If the variance of the scores grows a little, the difference that is detected changes a little."""
    variances = np.linspace(0.1, 0.24, 71)
    values = np.array(
        [
            detectable_difference(
                [PairedQuestions(Spread(v, correlation, False), 120, 20)]
            )
            for v in variances
        ]
    )
    steps = np.diff(values)
    assert np.abs(np.diff(steps)).max() < 3e-4
