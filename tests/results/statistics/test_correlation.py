"""Tests of rank correlations and effective lengths."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helm_longctx.results.statistics.intervals import (
    Interval,
    drop,
    effective_length,
    length_means,
    mean_interval,
    possible_lengths,
    share_of_shortest,
)
from helm_longctx.results.statistics.ranking import correlate_pairs, spearman


def test_missing_values_are_left_out_in_pairs() -> None:
    """Only rows with both values count in a correlation."""
    nan = math.nan
    result = spearman([1, 2, 3, 4, nan, 6], [1, 2, 3, 5, 0, 4])
    assert result.n == 5
    assert result.rho == pytest.approx(0.9)
    assert result.low < 0.9 < result.high <= 1


def test_what_cannot_be_correlated() -> None:
    """A constant column has no correlation, and three pairs have no interval."""
    assert math.isnan(spearman([1, 1, 1, 1], [1, 2, 3, 4]).rho)
    three = spearman([1, 2, 3], [1, 2, 3])
    assert three.rho == pytest.approx(1)
    assert math.isnan(three.low)
    assert math.isnan(three.high)


@pytest.mark.parametrize("n", [4, 5, 10, 30])
def test_a_perfect_order_is_not_certain(n: int) -> None:
    """The interval of a perfect correlation has a width, and its p-value is 2 / n!, which is 0.017 for five models."""
    for correlation in (
        spearman(range(n), range(n)),
        spearman(range(n), range(n)[::-1]),
    ):
        assert correlation.p_value == pytest.approx(2 / math.factorial(n))
        assert correlation.high - correlation.low > 1e-4
        assert correlation.low <= correlation.rho <= correlation.high


@pytest.mark.parametrize("n", [5, 10, 30])
def test_the_interval_of_a_perfect_order(n: int) -> None:
    """The interval of a perfect order is around the middle between 1 and the largest correlation below 1."""
    swapped = [1, 0, *range(2, n)]
    middle = (1 + spearman(range(n), swapped).rho) / 2
    half = 1.959964 * math.sqrt(1.5 / (n - 3))
    low = math.tanh(math.atanh(middle) - half)
    assert spearman(range(n), range(n)).low == pytest.approx(low)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=6)
)
@settings(max_examples=15, deadline=None)
def test_few_models_have_exact_p_values(rows: list[tuple[int, int]]) -> None:
    """The p-values of few models are equal to scipy's permutation test over all orders, also with ties."""
    from scipy.stats import permutation_test, spearmanr

    x, y = (np.array(column) for column in zip(*rows, strict=True))
    assume(np.ptp(x) > 0 and np.ptp(y) > 0)
    expected = permutation_test(
        (x,),
        lambda x: abs(spearmanr(x, y).statistic).round(9),
        permutation_type="pairings",
        alternative="greater",
        vectorized=False,
    )
    assert spearman(x, y).p_value == pytest.approx(expected.pvalue)


def test_many_models_with_ties_have_the_p_values_of_scipy() -> None:
    """The p-value of many models with ties is equal to scipy's, which uses the t approximation."""
    from scipy.stats import spearmanr

    random = np.random.default_rng(1)
    x = random.integers(0, 9, 20)
    y = random.random(20)
    assert spearman(x, y).p_value == pytest.approx(spearmanr(x, y).pvalue)


@pytest.mark.parametrize(
    ("n", "level", "critical"),
    [
        (10, 0.05, 0.648),
        (10, 0.01, 0.794),
        (12, 0.05, 0.587),
        (15, 0.05, 0.521),
        (20, 0.05, 0.447),
        (20, 0.01, 0.570),
    ],
)
def test_many_models_have_the_critical_values_of_tables(
    n: int, level: float, critical: float
) -> None:
    """The p-value without ties falls below a level at the critical value that tables print (Zar 1984, table B.20)."""
    squares = round((1 - critical) * n * (n**2 - 1) / 6 / 2) * 2
    correlation = spearman(range(n), order_with(n, squares))
    assert correlation.rho == pytest.approx(critical, abs=6e-4)
    assert correlation.p_value <= level
    assert spearman(range(n), order_with(n, squares + 2)).p_value > level


def test_many_models_have_the_p_values_of_the_series() -> None:
    """The p-value without ties is the Edgeworth series at the sum of squared distances, a whole number.

    The series is that of Best and Roberts (1975), written in the powers of 1 / n.
    """
    random = np.random.default_rng(5)
    for n in (10, 11, 13, 18, 27, 40):
        for _ in range(6):
            order = random.permutation(n)
            squares = int(((order - np.arange(n)) ** 2).sum())
            squares = min(squares, n * (n**2 - 1) // 3 - squares)
            root = (1 - 6 * (squares + 1) / (n * (n**2 - 1))) * math.sqrt(n - 1)
            y = root**2
            series = 0.2274 + 0.2531 / n + 0.1745 / n**2
            series += y * (-0.0758 + 0.1033 / n + 0.3932 / n**2)
            series -= y**2 / n * (0.0879 + 0.0151 / n)
            series += y**3 / n * (0.0072 - 0.0831 / n)
            series += y**4 / n**2 * (0.0131 - 0.00046 * y)
            upper = math.erfc(root / math.sqrt(2)) / 2
            tail = upper + root * series * math.exp(-y / 2) / n
            expected = min(max(2 * tail, 0), 1)
            p_value = spearman(range(n), order).p_value
            assert p_value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def order_with(n: int, squares: int) -> list[int]:
    """Return an order of n numbers whose squared distances from their places have this sum.

    Numbers change places at random, if the sum comes nearer by that or stays as near.
    """
    random = np.random.default_rng(n)
    order = random.permutation(n)

    def miss(order: NDArray[np.intp]) -> int:
        return abs(int(((order - np.arange(n)) ** 2).sum()) - squares)

    while miss(order):
        changed = order.copy()
        places = random.choice(n, 2, replace=False)
        changed[places] = order[places[::-1]]
        if miss(changed) <= miss(order):
            order = changed
    return order.tolist()


def test_the_interval_covers() -> None:
    """About 95 % of intervals contain the rank correlation of two normal columns for which it is known."""
    random = np.random.default_rng(0)
    r = 0.7
    expected = 6 / math.pi * math.asin(r / 2)
    hits = 0
    for _ in range(400):
        x = random.standard_normal(40)
        result = spearman(x, r * x + math.sqrt(1 - r**2) * random.standard_normal(40))
        hits += result.low <= expected <= result.high
    assert 0.92 <= hits / 400 <= 0.98


RULER = {
    "GPT-4-1106-preview": (65536, "96.6 96.3 95.2 93.2 87.0 81.2", "91.6 89.0 94.1"),
    "Llama3.1 (8B)": (32768, "95.5 93.8 91.6 87.4 84.7 77.0", "88.3 85.4 91.3"),
    "Qwen2 (72B)": (32768, "96.9 96.1 94.9 94.1 79.8 53.7", "85.9 79.6 92.3"),
    "GLM4 (9B)": (65536, "94.7 92.8 92.1 89.9 86.7 83.1", "89.9 88.0 91.7"),
    "GradientAI/Llama3 (70B)": (
        16384,
        "95.1 94.4 90.8 85.4 80.9 72.1",
        "86.5 82.6 90.3",
    ),
    "LongAlpaca (13B)": (None, "60.6 57.0 56.6 43.6 0.0 0.0", "36.3 24.7 47.9"),
}
"""Effective length, scores at 4k to 128k, and their means (Avg., wAvg. inc and dec): the table in RULER's README."""


@pytest.mark.parametrize("model", RULER)
def test_rulers_effective_length_and_means(model: str) -> None:
    """Effective lengths are those that RULER prints, and means differ from its means only by rounded digits."""
    printed, scores, means = RULER[model]
    by_length = {
        4096 << power: float(score) / 100 for power, score in enumerate(scores.split())
    }
    assert effective_length(by_length, 0.856) == printed
    assert length_means(by_length) == pytest.approx(
        [float(mean) / 100 for mean in means.split()], abs=0.001
    )


def test_lengths() -> None:
    """The effective length is compared with a share of the score at the shortest length, and a drop has an interval."""
    scores = {4096: 0.95, 8192: 0.9, 16384: 0.8}
    assert effective_length(scores, 0.99) is None
    assert effective_length(scores, share_of_shortest(scores)) == 8192
    assert effective_length({}, 0.5) is None
    loss = drop(
        {8192: Interval(0.5, 0.46, 0.54, 10), 4096: Interval(0.9, 0.87, 0.93, 20)}
    )
    assert (loss.mean, loss.low, loss.high, loss.n) == pytest.approx(
        (0.4, 0.35, 0.45, 30)
    )


def test_clusters_count_as_one_pair() -> None:
    """Copies of pairs have the same correlation and interval as the pairs alone, and their t approximation's p-value."""
    from scipy.stats import spearmanr

    random = np.random.default_rng(5)
    x = random.random(20)
    y = x + random.random(20)
    alone = spearman(x, y)
    copies = spearman(np.tile(x, 4), np.tile(y, 4), clusters=20)
    assert copies.n == 80
    assert (copies.rho, copies.low, copies.high) == pytest.approx(
        (alone.rho, alone.low, alone.high)
    )
    assert copies.p_value == pytest.approx(spearmanr(x, y).pvalue)


@pytest.mark.parametrize("score", [0.5, 0.9])
@pytest.mark.parametrize(
    "curve", [(1.0, 0.83, 0.8), (0.86, 0.84, 0.84), (0.95, 0.7, 0.5)]
)
def test_the_true_effective_length_is_possible(
    score: float, curve: tuple[float, ...]
) -> None:
    """The lengths that are possible contain the true one, 8k, in at least 92 % of 200 samples, and not all of them."""
    random = np.random.default_rng(3)
    count = 0
    sizes = 0
    for _ in range(200):
        chances = zip(
            (4, 8, 16, 32), (score, *(part * score for part in curve)), strict=True
        )
        intervals = {
            length: mean_interval((random.random(100) < chance).astype(float))
            for length, chance in chances
        }
        possible = possible_lengths(intervals)
        count += 8 in possible
        sizes += len(possible)
    assert count >= 184
    assert sizes < 200 * 4


def test_possible_lengths_without_doubt() -> None:
    """Many questions leave one length, a threshold of the benchmark can leave none, and a score of 0 has no length."""
    curve = {4: 0.9, 8: 0.9, 16: 0.5}
    intervals = {
        length: Interval(mean, mean - 0.01, mean + 0.01, 9999)
        for length, mean in curve.items()
    }
    assert possible_lengths(intervals) == [8]
    assert possible_lengths(intervals, score=0.95) == [None]
    assert possible_lengths(intervals, score=0.7) == [8]
    assert (
        possible_lengths({4: Interval(0, 0, 0.1, 9), 8: Interval(0, 0, 0.1, 9)}) == []
    )


def test_all_pairs_are_those_of_two_columns() -> None:
    """Each pair of columns has the correlation of the rows in which both have a value."""
    generator = np.random.default_rng(1)
    columns = dict(zip("abcd", generator.normal(size=(4, 12)), strict=True))
    columns["b"][3] = columns["c"][[5, 7]] = np.nan
    columns["d"][2:] = np.nan
    pairs = correlate_pairs(columns)
    assert [*pairs] == [*combinations("abcd", 2)]
    for (one, other), correlation in pairs.items():
        alone = spearman(columns[one], columns[other])
        assert astuple(correlation) == pytest.approx(astuple(alone), nan_ok=True)


@pytest.mark.parametrize("n", [2_000, 10_000])
def test_a_perfect_order_of_many(n: int) -> None:
    """A correlation of thousands of values has a p-value near 0, and no error."""
    correlation = spearman(range(n), range(n))
    assert correlation.rho == pytest.approx(1)
    assert 0 <= correlation.p_value < 1e-12
