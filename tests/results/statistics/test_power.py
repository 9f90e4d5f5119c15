"""The power of planned samples is compared with statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helm_longctx.results.statistics.comparison import compare_pairs
from helm_longctx.results.statistics.power import (
    POWER,
    Spread,
    detectable_difference,
    detectable_mean_difference,
    error_of_difference,
    paired_spread,
    questions_needed,
    unpaired_spread,
)


@pytest.mark.parametrize("n", [5, 20, 100, 600])
def test_detectable_differences_are_those_of_statsmodels(n: int) -> None:
    """The detectable differences of paired and of independent samples are equal to statsmodels' ones."""
    from statsmodels.stats.power import TTestIndPower, TTestPower

    paired = TTestPower().solve_power(nobs=n, power=POWER, alpha=0.05)
    assert detectable_difference(Spread(0.3, 0.0, is_paired=True), n, n) == pytest.approx(0.3 * paired, rel=1e-3)
    independent = TTestIndPower().solve_power(nobs1=n, power=POWER, alpha=0.05)
    found = detectable_difference(unpaired_spread(0.25, 1.0), n, n)
    assert found == pytest.approx(0.5 * independent, rel=1e-3)


@pytest.mark.parametrize("difference", [0.01, 0.05, 0.2])
def test_samples_needed_are_those_of_statsmodels(difference: float) -> None:
    """The number of questions needed is statsmodels' number, rounded up."""
    from statsmodels.stats.power import TTestPower

    expected = TTestPower().solve_power(effect_size=difference / 0.5, power=POWER, alpha=0.05)
    needed = questions_needed(Spread(0.5, 0.0, is_paired=True), difference)
    assert needed == pytest.approx(math.ceil(expected), abs=1, rel=1e-3)
    assert detectable_difference(Spread(0.5, 0.0, is_paired=True), needed, needed) <= difference


def test_clusters_count_by_their_correlation() -> None:
    """A cluster counts as one question if its correlation is 1, and each of its questions counts if the correlation is 0."""
    errors = [error_of_difference(Spread(1.0, correlation, True), 60, 10) for correlation in (0.0, 1.0)]
    assert errors == pytest.approx([1 / math.sqrt(60), 1 / math.sqrt(10)])
    assert questions_needed(Spread(0.5, 1.0, True), 0.1, 6.0) == pytest.approx(
        6 * questions_needed(Spread(0.5, 1.0, True), 0.1), rel=0.01
    )
    assert detectable_difference(Spread(1.0, 1.0, True), 60, 1) == math.inf


def test_the_mean_of_tasks() -> None:
    """The mean of four equal tasks has half the error of one task."""
    assert detectable_mean_difference([0.02] * 4) == pytest.approx(detectable_mean_difference([0.02]) / 2)
    assert detectable_mean_difference([1.0]) == pytest.approx(1.96 + 0.8416, abs=1e-3)


def test_a_planned_sample_has_its_power() -> None:
    """Four of five simulated runs find the detectable difference that was planned from the spread of an earlier run."""
    random, n = np.random.default_rng(0), 150

    def answers(difference: float) -> tuple[np.ndarray, np.ndarray]:
        chances = np.repeat(random.beta(2, 2, n // 3), 3)
        return tuple((random.random(n) < np.clip(chances + d, 0, 1)).astype(float) for d in (difference, 0.0))

    groups = [number // 3 for number in range(n)]
    spreads = [paired_spread(*answers(0.0), groups) for _ in range(50)]
    spread = Spread(float(np.mean([each.deviation for each in spreads])), 0.0, True)
    difference = detectable_difference(spread, n, n)
    # The chances are clipped at 1, so the true difference is a little smaller.
    found = sum(compare_pairs(*answers(1.03 * difference), groups).p_value < 0.05 for _ in range(400)) / 400
    assert 0.7 <= found <= 0.9
