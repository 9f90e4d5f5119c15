"""Tests of the bounds of means of rare and skewed values."""

import math

import numpy as np
import pytest

from helm_longctx.results.statistics.comparison import level_of_look
from helm_longctx.results.statistics.heavy_tails import (
    are_above,
    fewest_values,
    group_means,
    lower_bound,
    upper_bound,
)

MARGIN = 0.05
ERROR = 0.025
ROUNDS = 30


@pytest.mark.parametrize("spread", [None, 0.3, 1.0, 2.0])
def test_values_at_the_margin_rarely_pass(spread: float | None) -> None:
    """A tenth of the values at 1, and lognormal ones with a mean at the margin, pass in about 2.5 % over 16 looks."""
    chance = np.random.default_rng(4)
    sizes = [round(48 * 1.08**number) for number in range(16)]
    passed = 0
    for _ in range(ROUNDS):
        if spread is None:
            values = 1.0 * (chance.random(sizes[-1]) < 0.1)
        else:
            values = chance.lognormal(
                math.log(MARGIN) - spread**2 / 2, spread, sizes[-1]
            )
        passed += any(
            _bound(values[:size], tuple(sizes[: number + 1])) < MARGIN
            for number, size in enumerate(sizes)
        )
    assert passed <= 2


@pytest.mark.parametrize(
    ("small", "large", "share", "floor"),
    [(0.0, MARGIN / 0.9, 0.9, 0.0), (-10 * MARGIN, 2 * MARGIN, 0.95, 10 * MARGIN)],
)
def test_values_of_which_few_are_small_are_rarely_above(
    small: float, large: float, share: float, floor: float
) -> None:
    """A mean that is just the margin is not called larger because a sample lacks its few small values.

    By Student's bound at 8 values, most of these samples would be.
    """
    margin = share * large + (1 - share) * small
    chance = np.random.default_rng(7)
    above = 0
    for _ in range(ROUNDS):
        values = np.where(chance.random(48) < share, large, small)
        looks = [values[:size] for size in (8, 16, 32, 48)]
        bounds = [lower_bound(look, floor, ERROR) for look in looks]
        above += max(bounds) > margin
        fast = [are_above(look[None], margin, floor, ERROR)[0] for look in looks]
        assert fast == [bound > margin for bound in bounds]
    assert above <= 2


def test_the_lower_bound_is_near_the_mean_of_many_values() -> None:
    """Eight values far above the margin are enough, and a bound is never above the mean."""
    chance = np.random.default_rng(8)
    assert lower_bound(np.full(8, 1.0), 0.0, ERROR) > MARGIN
    assert lower_bound(np.full(8, 1.0), 10 * MARGIN, ERROR) > MARGIN
    assert lower_bound(np.zeros(0), 0.5, ERROR) == -0.5
    many = chance.exponential(1.0, 2000)
    assert 0.8 < lower_bound(many, 0.0, ERROR) < many.mean()
    assert lower_bound(np.zeros(48), 0.0, ERROR) <= 0


def _bound(values: np.ndarray, looks: tuple[int, ...]) -> float:
    return upper_bound(values, MARGIN, 10 * MARGIN, ERROR, level_of_look(looks, ERROR))


def test_small_values_pass() -> None:
    """Values far below the margin pass with 48 of them, also if half of them are 0 or differ by noise."""
    chance = np.random.default_rng(5)
    small = chance.lognormal(-7, 1.5, (20, 48))
    assert all(_bound(row, (48,)) < MARGIN for row in small)
    assert all(_bound(row * (chance.random(48) < 0.5), (48,)) < MARGIN for row in small)
    assert all(
        _bound(0.005 * chance.normal(size=48), (48,)) < MARGIN for _ in range(20)
    )


def test_fewest_values() -> None:
    """The named number of zeros passes, and one zero less does not; the bound has no unit."""
    fewest = fewest_values(MARGIN, 10 * MARGIN, ERROR)
    assert fewest == fewest_values(1.0, 10.0, ERROR) == 40
    assert _bound(np.zeros(fewest), (1,)) < MARGIN <= _bound(np.zeros(fewest - 1), (1,))
    assert upper_bound(np.zeros(0), MARGIN, 0.5, ERROR, ERROR) == 0.5
    assert upper_bound(np.zeros(99), MARGIN, 0.5, ERROR, 0.0) == 0.5


def test_group_means() -> None:
    """Values of a group are one value."""
    assert group_means([1.0, 2.0, 3.0], ["a", "b", "a"]).tolist() == [2.0, 2.0]
