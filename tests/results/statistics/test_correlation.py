"""Rank correlations and effective lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helm_longctx.statistics.correlation import matrix, spearman
from helm_longctx.statistics.intervals import Interval
from helm_longctx.statistics.lengths import drop, effective_length, length_means, share_of_shortest


def test_missing_values_are_left_out_in_pairs() -> None:
    """Only rows with both values count."""
    nan = math.nan
    result = spearman([1, 2, 3, 4, nan, 6], [1, 2, 3, 5, 0, 4])
    assert result.n == 5
    assert result.rho == pytest.approx(0.9)
    assert result.low < 0.9 < result.high <= 1


def test_what_cannot_be_correlated() -> None:
    """A constant column has no order; three pairs have no interval."""
    assert math.isnan(spearman([1, 1, 1, 1], [1, 2, 3, 4]).rho)
    three = spearman([1, 2, 3], [1, 2, 3])
    assert three.rho == pytest.approx(1)
    assert math.isnan(three.low)
    assert spearman(range(10), range(10)).low > 0.99


def test_the_interval_covers() -> None:
    """Of two normal columns whose rank correlation is known."""
    random, r = np.random.default_rng(0), 0.7
    expected = 6 / math.pi * math.asin(r / 2)
    hits = 0
    for _ in range(400):
        x = random.standard_normal(40)
        result = spearman(x, r * x + math.sqrt(1 - r**2) * random.standard_normal(40))
        hits += result.low <= expected <= result.high
    assert 0.92 <= hits / 400 <= 0.98


def test_a_matrix_has_each_pair_once() -> None:
    """The earlier column first."""
    assert list(matrix({"a": [1, 2, 3], "b": [3, 2, 1], "c": [1, 3, 2]})) == [("a", "b"), ("a", "c"), ("b", "c")]


RULER = {
    "GPT-4-1106-preview": (65536, "96.6 96.3 95.2 93.2 87.0 81.2", "91.6 89.0 94.1"),
    "Llama3.1 (8B)": (32768, "95.5 93.8 91.6 87.4 84.7 77.0", "88.3 85.4 91.3"),
    "Qwen2 (72B)": (32768, "96.9 96.1 94.9 94.1 79.8 53.7", "85.9 79.6 92.3"),
    "GLM4 (9B)": (65536, "94.7 92.8 92.1 89.9 86.7 83.1", "89.9 88.0 91.7"),
    "GradientAI/Llama3 (70B)": (16384, "95.1 94.4 90.8 85.4 80.9 72.1", "86.5 82.6 90.3"),
    "LongAlpaca (13B)": (None, "60.6 57.0 56.6 43.6 0.0 0.0", "36.3 24.7 47.9"),
}
"""Effective length, scores at 4k to 128k, and their means (Avg., wAvg. inc and dec): the table in RULER's README."""


@pytest.mark.parametrize("model", RULER)
def test_rulers_effective_length_and_means(model: str) -> None:
    """What RULER prints. It computed its means from scores with more digits."""
    printed, scores, means = RULER[model]
    by_length = {4096 << place: float(score) / 100 for place, score in enumerate(scores.split())}
    assert effective_length(by_length, 0.856) == printed
    assert length_means(by_length) == pytest.approx([float(mean) / 100 for mean in means.split()], abs=0.001)


def test_lengths() -> None:
    """A share of the shortest, and the drop."""
    scores = {4096: 0.95, 8192: 0.9, 16384: 0.8}
    assert effective_length(scores, 0.99) is None
    assert effective_length(scores, share_of_shortest(scores)) == 8192
    assert effective_length({}, 0.5) is None
    found = drop({8192: Interval(0.5, 0.46, 0.54, 10), 4096: Interval(0.9, 0.87, 0.93, 20)})
    assert (found.mean, found.low, found.high, found.n) == pytest.approx((0.4, 0.35, 0.45, 30))
