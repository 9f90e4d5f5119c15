"""Rank correlations and effective lengths."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helm_longctx.statistics.correlation import matrix, spearman
from helm_longctx.statistics.lengths import above_floor, drop, effective_length, share_of_shortest


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


def test_effective_length() -> None:
    """The longest length before the score falls below the threshold, as RULER counts."""
    scores = {4096: 0.95, 8192: 0.9, 16384: 0.8, 32768: 0.9}
    assert effective_length(scores, 0.856) == 8192
    assert effective_length(scores, 0.99) is None
    assert effective_length(scores, share_of_shortest(scores)) == 8192
    assert effective_length({}, 0.5) is None
    assert drop(scores) == pytest.approx(0.05)
    assert above_floor(0.6, 0.2) == pytest.approx(0.5)
