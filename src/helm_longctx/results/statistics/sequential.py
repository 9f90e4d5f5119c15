"""Tests and intervals of a mean that hold whenever one looks, so that sampling can stop when a question is decided.

An interval of `intervals.py` is right for a sample whose size was fixed in advance. If somebody looks after each score
and stops when the interval suits, it is wrong far more often than in 5 % of cases. The functions of this module stay
right with any rule of stopping.

They bet against a hypothesis "the mean is m" (Waudby-Smith and Ramdas 2023, "Estimating means of bounded random
variables by betting", arXiv 2010.09686: the hedged grid of constant bets, hgKelly). A player starts with a wealth of 1
and stakes the share c of it on "the next score is above m". So a score x multiplies the wealth by 1 - c + c x / m. If
the mean is at most m, the wealth does not grow on average, and the probability that it ever reaches 1 / error is at
most `error` (Ville's inequality). The wealth is averaged over a grid of shares. It falls with m, so the means that are
not rejected are an interval.

The values are in the order in which they were observed. Each has the same expected value, whatever was observed before.
For questions in clusters, a value is the mean of a cluster.

`DeadlineTest` knows how many values there are at most, and decides with fewer of them: a bet without an end must spare
wealth for values that may never come. It chooses each stake so that the goal, a wealth of 1 / error, is reached with
the largest probability until then, if the values are distributed as expected. The stakes are found by dynamic
programming. With right and wrong answers the result is about the most powerful test of a fixed number of them, and each
question has a small price, so it mostly ends much earlier. If the values are distributed differently, the error is the
same, and only the power is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from helm_longctx.results.statistics.intervals import Floats, Interval
from helm_longctx.results.statistics.level import LEVEL

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Bounds(NamedTuple):
    """The smallest and the largest possible value."""

    low: float
    high: float


SCORES = Bounds(0.0, 1.0)

DIFFERENCES = Bounds(-1.0, 1.0)
"""Bounds of the difference of two scores of the same question."""

_ERROR = 1 - LEVEL
"""Probability of a wrong decision, or of an interval that does not contain the mean, unless another one is given."""

_STAKES = np.sin(np.pi * np.arange(1, 21) / 40) ** 2
"""Shares of the wealth that are staked. They follow the arcsine distribution and include 1, as in the universal
portfolio of Cover and Ordentlich (1996). The paper's shares are equally spaced and below 1. With ours fewer scores are
needed if all of them are equal."""

_STEPS = 40
"""Number of bisections for an end of an interval, so that it is exact to 2⁻⁴⁰ of the bounds' distance."""


class ThresholdDecision(Enum):
    """What is known about a mean and a threshold."""

    ABOVE = "above"
    BELOW = "below"
    OPEN = "open"


def decide(
    values: ArrayLike,
    threshold: float,
    error: float = _ERROR,
) -> ThresholdDecision:
    """Say whether the mean is above or below a threshold, or that the values do not decide it yet.

    The decision is the first one that was possible in the order of the values, so more values never change it. It is
    wrong with a probability of at most `error`, however many values are observed and whenever one looks. If the mean is
    exactly the threshold, both decisions are wrong, and together have twice this probability.

    Args:
        values: shape (n,), scores in 0…1 in the order of observation; n can be 0.
        threshold: the compared mean.
        error: probability of a wrong decision, above 0 and below 1.

    Raises:
        ValueError: a value is outside 0…1, the threshold is not between 0 and 1, or the error is not a probability.
    """
    scores = _check(values, error)
    if not 0 < threshold < 1:
        raise ValueError(f"threshold {threshold} is not between 0 and 1")
    # Unless the mean is the threshold, only one of the two decisions is wrong, so each can have the whole error.
    above = _first(_wealth(scores, threshold), error)
    below = _first(_wealth(1 - scores, 1 - threshold), error)
    if above == below:
        return ThresholdDecision.OPEN
    if above < below:
        return ThresholdDecision.ABOVE
    return ThresholdDecision.BELOW


def count_until_decision(
    values: ArrayLike,
    threshold: float,
    most: int,
    error: float = _ERROR,
) -> int:
    """Return how many further scores can decide at the soonest: if all of them are 1, or all of them are 0.

    A sampler that asks as many at a time never asks more than one that asks them singly.

    Args:
        values, threshold, error: as for `decide`.
        most: largest number that is returned.
    """
    known = _check(values, error)
    right, wrong = (np.concatenate([known, np.full(most, end)]) for end in (1.0, 0.0))
    soonest = min(
        _first(_wealth(right, threshold), error),
        _first(_wealth(1 - wrong, 1 - threshold), error),
    )
    return min(max(soonest + 1 - len(known), 0), most)


def sequential_interval(values: ArrayLike, error: float = _ERROR) -> Interval:
    """Return the mean of the values and an interval that contains the expected value at all sample sizes together.

    More values never make the interval wider, because what an earlier sample excluded stays excluded. So it can lie
    beside the mean of the values, and it can shrink to a point, if the expected value changes during the sampling.

    Args:
        values: shape (n,), scores in 0…1 in the order of observation.
        error: probability with which the interval excludes the expected value at any time.

    Raises:
        ValueError: a value is outside 0…1, or the error is not a probability.
    """
    scores = _check(values, error)
    if not scores.size:
        return Interval(math.nan, 0.0, 1.0, 0)
    # The interval has two ends that can be wrong, so each has half of the error.
    low = _largest(lambda mean: _is_reached(_wealth(scores, mean), error / 2))
    high = 1 - _largest(lambda mean: _is_reached(_wealth(1 - scores, mean), error / 2))
    return Interval(float(scores.mean()), low, max(low, high), len(scores))


def _check(values: ArrayLike, error: float) -> Floats:
    """Return the values, or raise a `ValueError` if one is not in 0…1, or the error is not a probability."""
    array = np.asarray(values, dtype=float)
    # NaN is outside too, so the condition is not about values that are too small or too large.
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError("the values are not all between 0 and 1")
    if not 0 < error < 1:
        raise ValueError(f"error {error} is not between 0 and 1")
    return array


def _wealth(values: Floats, mean: float) -> Floats:
    """Return the logarithm of the wealth after each value, if the player bets that the values are above the mean.

    Args:
        values: shape (n,), in 0…1.
        mean: the hypothesis, above 0 and below 1.
    """
    # A lost stake of the whole wealth has the logarithm -inf.
    with np.errstate(divide="ignore"):
        factors = np.log(1 - _STAKES[:, None] + _STAKES[:, None] * values / mean)
        return np.asarray(
            np.logaddexp.reduce(np.cumsum(factors, axis=1), axis=0)
            - math.log(len(_STAKES))
        )


def _is_reached(wealth: Floats, error: float) -> bool:
    return bool((wealth >= -math.log(error)).any())


def _first(wealth: Floats, error: float) -> int:
    """Return the index of the first value that rejects the hypothesis; the number of values if none does."""
    reached = wealth >= -math.log(error)
    if reached.any():
        return int(reached.argmax())
    return len(wealth)


def _largest(is_rejected: Callable[[float], bool]) -> float:
    """Return the largest mean that is rejected, or slightly less; 0 if none is."""
    low = 0.0
    high = 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if is_rejected(middle):
            low = middle
        else:
            high = middle
    return low


_PRICE = 0.0002
"""What a value costs, as a part of the probability to reach the goal. Without it, clear cases need twice as many."""

_GRID = np.unique(
    [
        0.0,
        *np.logspace(-5, 0, 80),
        *np.linspace(0, 1, 141),
        *(1 - np.logspace(-5, -1, 30)),
    ]
)
"""Shares of the goal for which the probability to reach it is computed. Between them it is interpolated."""

_PARTS = np.linspace(0, 1, 33)
"""Parts of the largest stake that are tried, besides those that reach the goal with the next value."""

_BIN = 0.1
"""Expected values that are nearer to each other are taken together."""


class Outcomes(NamedTuple):
    """The values that are expected, with their probabilities."""

    values: tuple[float, ...]
    chances: tuple[float, ...]


def collect_outcomes(values: ArrayLike, weights: ArrayLike) -> Outcomes:
    """Return the distribution of values, in which those that are near to each other are one.

    Args:
        values, weights: shape (n,).
    """
    every = np.asarray(values, dtype=float)
    parts = np.asarray(weights, dtype=float)
    codes = np.unique(np.round(every / _BIN), return_inverse=True)[1]
    sums = np.bincount(codes, parts)
    means = np.bincount(codes, parts * every) / sums
    chances = sums / sums.sum()
    # Two values are exact, because a stake that misses the goal by little needs one more value. More values are never
    # hit exactly, and are rounded, so that similar tests share their tables.
    if len(means) > 2:
        means = np.round(means, 2)
        chances = np.round(chances, 2)
        means = means[chances > 0]
        chances = chances[chances > 0] / chances.sum()
    return Outcomes(tuple(map(float, means)), tuple(map(float, chances)))


class DeadlineTest:
    """Decides whether the mean of values is above 0, with a largest number of values.

    Args:
        expected: how the values are distributed if their mean is above 0, as far as one knows.
        least: the least possible value of all questions, below 0. It must not depend on the question that was drawn:
            the hypothesis is about the mean over questions, and a bound for each question would weight them.
        most: the largest number of values.
        error: the probability that the test says so although the mean is not above 0.

    Attributes:
        share: the wealth as a share of the goal.
        count: the number of values so far.
        least: the least possible value.
    """

    def __init__(
        self,
        expected: Outcomes,
        least: float,
        most: int,
        error: float,
    ):
        self._expected = expected
        self.least = min(least, -0.01)
        self._most = most
        self._tables = _solve(expected, self.least, most)
        self.share = error
        self.count = 0

    @property
    def is_above(self) -> bool:
        """Whether the mean is above 0."""
        return self.share >= 1 - 1e-9

    @property
    def power(self) -> float:
        """The probability to find a mean above 0 if the values are as expected, less the price of the values."""
        return float(_look_up(self._tables[self.count], np.array([self.share]))[0])

    def add(self, value: float) -> None:
        """Take the next value; nothing changes after the decision or after the last value."""
        if self.is_above or self.count >= self._most:
            return
        self.share = float(
            self.next_shares(np.array([self.share]), self.count, value)[0]
        )
        self.count += 1

    def next_shares(
        self,
        shares: Floats,
        count: int,
        values: ArrayLike,
    ) -> Floats:
        """Return the wealth after the next value, of tests that differ only in their values.

        Args:
            shares: shape (tests,): the wealth as shares of the goal.
            count: the number of values so far.
            values: shape (tests,), or one for all. None is below `least`.
        """
        stakes = self._choose_stakes(shares, count)
        # No stake loses more than there is, because its largest loss is the whole share. Rounding may.
        wealth = np.maximum(0.0, shares + stakes * np.asarray(values))
        return np.asarray(np.where(shares >= 1 - 1e-9, shares, wealth))

    def _choose_stakes(self, shares: Floats, count: int) -> Floats:
        """Return the stake on the next value with the largest probability to reach the goal, for each share.

        Args:
            shares: shape (tests,).
            count: the number of values so far.
        """
        # Tests with the same values so far have the same share, and finding the best stake takes time.
        distinct, places = np.unique(shares, return_inverse=True)
        stakes = _stakes(distinct, self.least, self._expected)
        gains = _expect(
            self._tables[count + 1], distinct[:, None], stakes, self._expected
        )
        best = stakes[np.arange(len(distinct)), gains.argmax(axis=1)]
        return np.asarray(best[places])

    def count_until_sure(self, value: float, most: int) -> int:
        """Return how many further values decide at the soonest, if all are as large as this one; at most `most`."""
        share = self.share
        count = self.count
        while not self.is_above and self.count < min(self._most, count + most):
            self.add(value)
        needed = self.count - count if self.is_above else most
        self.share = share
        self.count = count
        return needed


@lru_cache(maxsize=256)
def _solve(expected: Outcomes, least: float, most: int) -> tuple[Floats, ...]:
    """Return the probabilities to reach the goal from each share of it, by the number of values so far."""
    tables = [(_GRID >= 1).astype(float)]
    stakes = _stakes(_GRID, least, expected)
    transitions = _find_transitions(stakes, expected)
    for _ in range(most):
        chances = (transitions @ tables[-1]).reshape(stakes.shape)
        gains = chances.max(axis=1) - _PRICE
        gains[_GRID >= 1] = 1
        tables.append(np.maximum.accumulate(np.maximum(gains, 0)))
    return tuple(reversed(tables))


def _find_transitions(stakes: Floats, expected: Outcomes) -> csr_array:
    """Return the weights of the shares of the grid after the next value, for each share and stake.

    The product with a table is the same as `_expect` for all shares of the grid. The places between the shares are
    found once for all numbers of values, which takes most of the time.

    Args:
        stakes: shape (shares, stakes).
    """
    from scipy.sparse import csr_array

    values = np.array(expected.values)
    after = _GRID[:, None, None] + stakes[:, :, None] * values
    after = np.where(after >= 1 - 1e-9, 1.0, np.clip(after, 0.0, 1.0))
    below = np.searchsorted(_GRID, after, side="right") - 1
    below = np.minimum(below, len(_GRID) - 2)
    parts = (after - _GRID[below]) / np.diff(_GRID)[below]
    chances = np.array(expected.chances)
    weights = np.stack([chances * (1 - parts), chances * parts], axis=-1)
    columns = np.stack([below, below + 1], axis=-1)
    entries = np.arange(stakes.size + 1) * 2 * len(values)
    return csr_array(
        (weights.ravel(), columns.ravel(), entries), shape=(stakes.size, len(_GRID))
    )


def _stakes(shares: Floats, least: float, expected: Outcomes) -> Floats:
    """Return the stakes to try, shape (shares, stakes)."""
    largest = shares / -least
    exact = []
    for value in expected.values:
        if value > 0:
            exact.append(np.minimum((1 - shares) / value, largest))
    return np.column_stack([_PARTS * largest[:, None], *exact])


def _expect(
    table: Floats,
    shares: Floats,
    stakes: Floats,
    expected: Outcomes,
) -> Floats:
    """Return the probability to reach the goal after the next value, for each share and stake."""
    pairs = zip(expected.values, expected.chances, strict=True)
    parts = []
    for value, chance in pairs:
        parts.append(chance * _look_up(table, shares + stakes * value))
    return np.asarray(np.sum(parts, axis=0))


def _look_up(table: Floats, shares: Floats) -> Floats:
    # Slightly less than the goal is the goal, because a stake that reaches it exactly is rounded.
    return np.asarray(
        np.where(shares >= 1 - 1e-9, 1.0, np.interp(shares, _GRID, table))
    )
