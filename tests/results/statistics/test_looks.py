"""Tests of the division of the error over looks at a growing sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.results.statistics.comparison import (
    FIRST_OF_GATE,
    FIRST_OF_ROUNDS,
    Pairs,
    compare_parts,
    level_of_look,
    next_looks,
    p_value_of_looks,
    quantile_of,
)


@pytest.mark.parametrize("first", [FIRST_OF_GATE, FIRST_OF_ROUNDS])
@pytest.mark.parametrize(
    "sizes", [(100,), (100, 130, 169, 220, 286, 371), (100, 101, 102, 110), (40, 400)]
)
def test_all_looks_together_have_the_error(
    first: float, sizes: tuple[int, ...]
) -> None:
    """A random walk passes some bound as often as the error that is spent, for any sizes of the sample."""
    random = np.random.default_rng(1)
    rounds = 200_000
    error = 0.025
    walk = np.zeros(rounds)
    passed = np.zeros(rounds, bool)
    before = 0
    for look, size in enumerate(sizes):
        walk += random.normal(size=rounds) * np.sqrt(size - before)
        before = size
        passed |= walk / np.sqrt(size) > quantile_of(
            level_of_look(sizes[: look + 1], error, first)
        )
        spent = error * (1 - (1 - first) * sizes[0] / size)
        assert passed.mean() == pytest.approx(spent, abs=0.0013)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 2000), min_size=1, max_size=4, unique=True),
    st.floats(1e-6, 0.4),
)
def test_the_p_value_agrees_with_the_level(sizes: list[int], error: float) -> None:
    """A look rejects at an error if and only if its p-value over all looks is below it."""
    looks = tuple(sorted(sizes))
    level = level_of_look(looks, error)
    assert p_value_of_looks(0.97 * level, looks) < error
    assert p_value_of_looks(min(1.0, 1.03 * level), looks) > error * 0.999
    assert p_value_of_looks(0.0, looks) < 1e-6
    assert p_value_of_looks(1.0, looks) == 1.0


def test_which_looks_count() -> None:
    """The same size again is the same look, and a smaller sample than an earlier one has no error left."""
    assert next_looks([], 50) == (50,)
    assert next_looks([80, 50], 120) == (50, 80, 120)
    assert next_looks([50, 80, 120], 80) == (50, 80)
    assert level_of_look(next_looks([50, 80], 60), 0.025) == 0
    assert p_value_of_looks(1e-9, next_looks([50, 80], 60)) == 1
    # Each further look costs something, and looks at nearly equal sizes cost little.
    assert (
        level_of_look((100, 200, 300), 0.025) < level_of_look((100, 300), 0.025) < 0.02
    )
    assert level_of_look((100, 101, 102, 300), 0.025) > 0.9 * level_of_look(
        (100, 300), 0.025
    )


@pytest.mark.parametrize("looks", [(30,), (30, 60), (20, 40, 60)])
@pytest.mark.parametrize("wins", [5, 7, 9, 10, 11, 12, 13, 15])
def test_a_comparison_after_looks_agrees_with_its_interval(
    looks: tuple[int, ...], wins: int
) -> None:
    """After looks, the p-value is below 0.05 if and only if the interval excludes 0, and it is larger than without looks."""
    a = np.repeat([1.0, 0.0, 0.5], [wins, 2, 60 - wins - 2])
    part = Pairs(a, np.where(a == 0.5, 0.5, 1 - a), range(60), 1.0)
    comparison = compare_parts([part], looks)
    once = compare_parts([part])
    assert (comparison.p_value < 0.05) == (comparison.effect.low > 0)
    assert comparison.p_value > once.p_value
    assert comparison.effect.low < once.effect.low
    assert comparison.p_value == pytest.approx(
        2 * min(0.5, p_value_of_looks(once.p_value / 2, looks, FIRST_OF_ROUNDS))
    )
