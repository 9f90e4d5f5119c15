"""Compares two models (effect, test, wins), and decides which of many models differ, with Holm's correction.

Whoever looks again after "cannot tell" errs more often than whoever looks once. So each look at a growing sample has a
part of the error, and a decision is valid whenever somebody looks. The first look has a large share, because most
decisions are made there, and the others have the rest: after a sample of n, with a first look at n₁, the share
1 - (1 - first) n₁ / n of the error is spent. This never ends, so there is no largest number of looks, and a look after
a few more instances costs little. The level of each look follows from the correlation of the statistics, √(n₁ / n₂) at
n₁ and n₂ instances (Lan and DeMets 1983). The bets of `sequential.py` need no list of looks and no normal
approximation, but more instances for the same power (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.results.statistics.intervals import (
    Floats,
    Interval,
    cluster_sums,
    group_codes,
    normal_quantile,
)
from helm_longctx.results.statistics.level import SIGNIFICANCE

Looks = tuple[int, ...]
"""The sizes of the sample at all looks until now, ascending. The last one is the size now."""

FIRST_OF_GATE = 0.8
FIRST_OF_ROUNDS = 0.25
"""The share of the error of the first look: of a gate, whose first sample is planned to be enough, and of runs that
begin with a small sample and are looked at after each round."""

_LEVELS = np.geomspace(1e-12, 0.5, 32)
"""One-sided errors for which levels are computed. Between them, logarithms are interpolated."""

_GRID = np.linspace(-9, 9, 301)
"""Values of the statistic at which its distribution is computed."""


def next_looks(earlier: Iterable[int], size: int) -> Looks:
    """Return the looks until the one at a size. The earlier ones are known in any order.

    A size at which somebody has looked before is the same look. A sample that is smaller than an earlier one, and was
    never looked at, has no error left: it returns the earlier looks, and then the smaller size.
    """
    sizes = set(earlier)
    return (
        *sorted(
            earlier_size
            for earlier_size in sizes
            if earlier_size < size or size not in sizes
        ),
        size,
    )


def level_of_look(looks: Looks, error: float, first: float = FIRST_OF_GATE) -> float:
    """Return the one-sided level at which a test of the last look is made, so that all looks together keep the error.

    Args:
        error: the one-sided error of all looks, above 0 and at most 0.5.
        first: the share of the error of the first look.

    Returns:
        The level. It is 0 if the sample is smaller than at an earlier look.
    """
    if len(looks) == 1:
        return first * error
    levels = _levels(looks, first)
    if not levels[-1]:
        return 0.0
    return float(np.exp(np.interp(np.log(error), np.log(_LEVELS), np.log(levels))))


def quantile_of(level: float) -> float:
    """Return the normal quantile of a one-sided test; infinite at the level 0."""
    from scipy.special import ndtri

    return -float(ndtri(level))


def p_value_of_looks(
    p_value: float,
    looks: Looks,
    first: float = FIRST_OF_GATE,
) -> float:
    """Return the smallest error of all looks with which the last one rejects; see `level_of_look`.

    Args:
        p_value: the one-sided p-value at the last look alone.
    """
    if len(looks) == 1:
        return min(1.0, p_value / first)
    levels = _levels(looks, first)
    if p_value >= levels[-1]:
        return 1.0
    # A p-value of 0 has no logarithm.
    return float(
        np.exp(np.interp(np.log(max(p_value, 1e-300)), np.log(levels), np.log(_LEVELS)))
    )


@lru_cache(maxsize=4096)
def _levels(looks: Looks, first: float) -> Floats:
    """Return the levels of the last look for all errors of `_LEVELS`."""
    from scipy.special import ndtr

    if max(looks) != looks[-1]:
        return np.zeros_like(_LEVELS)
    return np.asarray(ndtr(-_find_bounds(looks, first)))


def _find_bounds(looks: Looks, first: float) -> Floats:
    """Return the bounds that the last statistic passes, where no earlier one has, with the error of this look."""
    from scipy.special import ndtr, ndtri

    if len(looks) == 1:
        return -np.asarray(ndtri(first * _LEVELS))
    mass = _walk(looks[:-1], first)
    same, deviation = _step(looks)
    errors = (1 - first) * looks[0] * (1 / looks[-2] - 1 / looks[-1]) * _LEVELS
    low = np.full(len(errors), -9.0)
    high = np.full(len(errors), 12.0)
    for _ in range(30):
        middle = (low + high) / 2
        passed = (mass * ndtr((same * _GRID[:, None] - middle) / deviation)).sum(axis=0)
        low = np.where(passed > errors, middle, low)
        high = np.where(passed > errors, high, middle)
    return high


@lru_cache(maxsize=256)
def _walk(looks: Looks, first: float) -> Floats:
    """Return the probabilities of the values of the last statistic where no look has passed its bound.

    Returns:
        Shape (values of `_GRID`, errors of `_LEVELS`).
    """
    from scipy.special import ndtr

    half = (_GRID[1] - _GRID[0]) / 2
    edges = np.append(_GRID - half, _GRID[-1] + half)[:, None]
    if len(looks) == 1:
        mass = np.repeat(np.diff(ndtr(edges), axis=0), len(_LEVELS), axis=1)
    else:
        same, deviation = _step(looks)
        mass = np.diff(ndtr((edges - same * _GRID) / deviation), axis=0) @ _walk(
            looks[:-1], first
        )
    # A value's part of the grid can be on both sides of the bound.
    return np.asarray(
        mass
        * np.clip(
            (_find_bounds(looks, first) - _GRID[:, None]) / (2 * half) + 0.5, 0, 1
        )
    )


def _step(looks: Looks) -> tuple[float, float]:
    """Return the correlation of the last two statistics, and the deviation of the last one if the other is known."""
    same = math.sqrt(looks[-2] / looks[-1])
    return same, math.sqrt(1 - same**2)


FAILURES_DECIDE = "cannot tell: failures decide"
"""What is said if the answers show a difference that failures could explain."""

_EQUAL = 1e-9
"""Scores that differ by less are equal."""

PSEUDO = 2
"""Number of clusters that are added to the variance of the test."""

_PRIOR = 0.1
"""Number of clusters by which the size of those that are added is shrunk to its largest value. If few clusters differ,
and all by little, the sample does not show how large rare differences are."""

_Pair = TypeVar("_Pair", bound=Hashable)


@dataclass(frozen=True)
class Comparison:
    """One model compared with another.

    Args:
        effect: the difference of the means (first minus second) and its interval.
        p_value: the two-sided p-value. It is below `SIGNIFICANCE` if and only if the interval of the effect excludes
            0. It is NaN if there is no instance, or if a score has no interval.
        wins, losses, ties: numbers of instances on which the first model is better, worse, equal; 0 if only the means
            were compared.
        failures: the questions without an answer. None if both models answered everything.
    """

    effect: Interval
    p_value: float
    wins: int = 0
    losses: int = 0
    ties: int = 0
    failures: Failures | None = None

    @property
    def decisive_p_value(self) -> float:
        """The largest p-value of the cases in which a difference must hold; 1 if their signs differ.

        Questions need not fail at random. The cases are the questions that both answered, and all questions with
        failures as wrong. If the shares of failures differ, failures as right are a case, too.
        """
        if self.failures is None:
            return self.p_value
        bounds = [self.failures.as_wrong]
        if self.failures.is_uneven:
            bounds.append(self.failures.as_right)
        if any(bound.effect.mean * self.effect.mean <= 0 for bound in bounds):
            return 1.0
        return max(self.p_value, *(bound.p_value for bound in bounds))


@dataclass(frozen=True)
class SideFailures:
    """The questions that one of two models did not answer.

    Args:
        share: the share of the questions that were put to both, 0 to 1.
        other_score: the mean score of the other model on these questions; NaN if it answered none of them.
        other_n: the number of these questions that the other model answered.
    """

    share: float
    other_score: float = math.nan
    other_n: int = 0


@dataclass(frozen=True)
class Failures:
    """What is known about the questions that two models did not answer.

    Args:
        asked: number of questions that were put to both.
        one, other: the failures of each model.
        p_value: the two-sided p-value of the sign test whether one model fails on more clusters; NaN if only shares are
            known.
        as_wrong, as_right: the comparison on all questions, where failures have the lowest or the highest score.
    """

    asked: int
    one: SideFailures
    other: SideFailures
    p_value: float
    as_wrong: Comparison
    as_right: Comparison

    @property
    def is_uneven(self) -> bool:
        """Whether one model fails more often than the other, or that is not known."""
        # NaN must be uneven, so the condition is not `<`.
        return not self.p_value >= SIGNIFICANCE

    def reverse(self) -> Failures:
        """Return the failures with the models in the other order."""
        return Failures(
            asked=self.asked,
            one=self.other,
            other=self.one,
            p_value=self.p_value,
            as_wrong=reverse_comparison(self.as_wrong),
            as_right=reverse_comparison(self.as_right),
        )


def reverse_comparison(comparison: Comparison) -> Comparison:
    """Return the comparison of the second model with the first one."""
    effect = comparison.effect
    return Comparison(
        effect=Interval(-effect.mean, -effect.high, -effect.low, effect.n),
        p_value=comparison.p_value,
        wins=comparison.losses,
        losses=comparison.wins,
        ties=comparison.ties,
        failures=comparison.failures and comparison.failures.reverse(),
    )


@dataclass(frozen=True)
class Decision:
    """Whether two models differ, if many are compared.

    Args:
        adjusted: the adjusted p-value of the questions that both answered.
        adjusted_with_failures: the adjusted `Comparison.decisive_p_value`.
    """

    comparison: Comparison
    adjusted: float
    adjusted_with_failures: float = 0.0

    @property
    def is_different(self) -> bool:
        """Whether one model is better; otherwise they are tied."""
        # NaN must be a tie, so the conditions are not `>=`.
        return (
            self.adjusted < SIGNIFICANCE and self.adjusted_with_failures < SIGNIFICANCE
        )

    @property
    def is_left_to_failures(self) -> bool:
        """Whether the answers show a difference that failures could explain."""
        return self.adjusted < SIGNIFICANCE and not self.is_different

    @property
    def verdict(self) -> str:
        """Whether the first model is `better` or `worse`, there is a `tie`, or `FAILURES_DECIDE`."""
        if self.is_left_to_failures:
            return FAILURES_DECIDE
        if not self.is_different:
            return "tie"
        if self.comparison.effect.mean > 0:
            return "better"
        return "worse"


def compare_pairs(
    a: ArrayLike,
    b: ArrayLike,
    groups: Sequence[object] | None = None,
) -> Comparison:
    """Compare two models by their scores on the same instances.

    If the models are equally good, the sign of each cluster's difference is random. The test is the normal
    approximation of this sign-flip test, with two more clusters in the variance. They have the size of those that
    differ, so that few differences are not taken for certain: five wins of five have the p-value 0.059, and the exact
    one is 0.0625. The interval has the effects that this test does not reject.

    Args:
        a, b: shape (n,): the scores of both models in 0…1, in the same order.
        groups: the group of each instance. None if all are independent.

    Raises:
        ValueError: the lengths differ.
    """
    differences = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    return _compare(
        differences, np.ones(len(differences)), group_codes(groups, len(differences))
    )


@dataclass(frozen=True)
class AskedPairs:
    """All questions of a part that were put to both models, if one of them did not answer all of them.

    Args:
        a, b: shape (n,): the scores of both; NaN without an answer.
        a_failed, b_failed: shape (n,): the share of the repeats of each question without an answer.
        groups: the group of each question.
    """

    a: Sequence[float]
    b: Sequence[float]
    a_failed: Sequence[float]
    b_failed: Sequence[float]
    groups: Sequence[object]


@dataclass(frozen=True)
class Pairs:
    """The scores of two models on the same instances of a part, such as a task.

    Args:
        a, b: shape (n,): the scores of both, in the same order. If n is 0, `asked` has questions.
        groups: the group of each instance; parts can share groups.
        weight: the part's share in the whole. The weights of all parts have the sum 1.
        asked: all questions that were put to both. None if both answered all of them.
    """

    a: ArrayLike
    b: ArrayLike
    groups: Sequence[object]
    weight: float
    asked: AskedPairs | None = None

    def with_failures_as(self, a_value: float, b_value: float) -> Pairs:
        """Return the scores on all questions, where each failure of a side has a value."""
        if self.asked is None:
            return self
        sides = []
        for scores, failed, value in (
            (self.asked.a, self.asked.a_failed, a_value),
            (self.asked.b, self.asked.b_failed, b_value),
        ):
            shares = np.asarray(failed, dtype=float)
            sides.append(np.nan_to_num(scores) * (1 - shares) + shares * value)
        return Pairs(
            a=sides[0],
            b=sides[1],
            groups=self.asked.groups,
            weight=self.weight,
        )


def compare_parts(parts: Sequence[Pairs], looks: Looks = ()) -> Comparison:
    """Compare two models by the weighted mean of the parts' mean differences; see `compare_pairs`.

    Args:
        parts: at least one part in which both models answered an instance.
        looks: the sizes of the sample at which somebody looked and could stop, with the size now. Empty if the size was
            fixed. The p-value and the interval are then right at all looks together.

    Returns:
        The comparison on the instances that both answered, with the `Failures` if there are others.
    """
    answered = [part for part in parts if len(part.groups)]
    answered_only = _compare(*join_pairs(answered), looks)
    if all(part.asked is None for part in parts):
        return answered_only
    return replace(answered_only, failures=_compare_failures(parts, looks))


def _compare_failures(parts: Sequence[Pairs], looks: Looks) -> Failures:
    asked = [part.asked for part in parts if part.asked is not None]
    one_scores = np.concatenate([answers.a for answers in asked])
    other_scores = np.concatenate([answers.b for answers in asked])
    answered = []
    for part in parts:
        answered.append(np.ravel([part.a, part.b]))
    scores = np.concatenate([*answered, one_scores, other_scores])
    # Scores of other metrics, such as log-probabilities, are outside 0…1.
    lowest = min(0.0, float(np.nanmin(scores)))
    highest = max(1.0, float(np.nanmax(scores)))

    def compare_with_failures_as(value: float) -> Comparison:
        changed = [part.with_failures_as(value, value) for part in parts]
        return _compare(*join_pairs(changed), looks)

    as_wrong = compare_with_failures_as(lowest)
    as_right = compare_with_failures_as(highest)
    one_failed = np.concatenate([answers.a_failed for answers in asked])
    other_failed = np.concatenate([answers.b_failed for answers in asked])
    groups: list[object] = []
    for answers in asked:
        groups += answers.groups
    more = cluster_sums(one_failed - other_failed, group_codes(groups, len(groups)))
    signs = (int((more > _EQUAL).sum()), int((more < -_EQUAL).sum()))
    count = 0
    for part in parts:
        count += len(part.asked.groups if part.asked else part.groups)
    return Failures(
        asked=count,
        one=_describe_side(one_failed, other_scores, count),
        other=_describe_side(other_failed, one_scores, count),
        p_value=min(1.0, 2 * sign_test(max(signs), min(signs))),
        as_wrong=as_wrong,
        as_right=as_right,
    )


def _describe_side(failed: Floats, scores: Floats, count: int) -> SideFailures:
    """Return the failures of a model.

    Args:
        failed: shape (n,): the share of the repeats without an answer.
        scores: shape (n,): the scores of the other model; NaN without an answer.
        count: the number of all questions.
    """
    rivals = scores[(failed > 0) & ~np.isnan(scores)]
    score = float(rivals.mean()) if rivals.size else math.nan
    return SideFailures(
        share=float(failed.sum()) / count,
        other_score=score,
        other_n=int(rivals.size),
    )


def join_pairs(parts: Sequence[Pairs]) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the differences of all parts, their weights, and the numbers of their clusters."""
    differences = []
    weights = []
    groups: list[object] = []
    for part in parts:
        of_part = np.asarray(part.a, dtype=float) - np.asarray(part.b, dtype=float)
        differences.append(of_part)
        weights.append(np.full(len(of_part), part.weight / len(of_part)))
        groups += part.groups
    codes = group_codes(groups, sum(map(len, differences)))
    return np.concatenate(differences), np.concatenate(weights), codes


def compare_intervals(one: Interval, other: Interval) -> Comparison:
    """Compare two independent means of which only the intervals are known, such as published scores.

    The distances to the ends are combined like standard errors (Zou and Donner 2008). Only the half of each interval
    on the side of the other mean counts. Half a right answer of each model is added (Yates 1934), because shares of
    right answers have steps, and without it more than 5 % of equally good models would differ. The p-value belongs to a
    normal distribution with this interval. If the models answered the same questions, the interval is rather too wide.
    """
    mean = one.mean - other.mean
    step = sum(0.5 / interval.n for interval in (one, other) if interval.n)
    below = math.hypot(one.mean - one.low, other.high - other.mean)
    above = math.hypot(one.high - one.mean, other.mean - other.low)
    distance = max(abs(mean) - step, 0.0)
    half = below if mean > 0 else above
    z = 0.0
    if half:
        z = distance / half * normal_quantile()
    elif distance:
        # Means without a width are exact.
        z = math.inf
    effect = Interval(
        mean, mean - below - step, mean + above + step, min(one.n, other.n)
    )
    return Comparison(effect, two_sided_p_value(z))


def compare_intervals_with_failures(
    one: Interval,
    other: Interval,
    one_share: float,
    other_share: float,
) -> Comparison:
    """Compare two independent means, also with failures as wrong and as right; see `compare_intervals`.

    Args:
        one_share, other_share: the share of the questions of each that have no answer, 0 to 1.
    """
    answered_only = compare_intervals(one, other)
    if not one_share and not other_share:
        return answered_only
    as_wrong, as_right = (
        compare_intervals(
            mix_failures(one, one_share, value),
            mix_failures(other, other_share, value),
        )
        for value in (0.0, 1.0)
    )
    failures = Failures(
        asked=min(one.n, other.n),
        one=SideFailures(one_share),
        other=SideFailures(other_share),
        p_value=math.nan,
        as_wrong=as_wrong,
        as_right=as_right,
    )
    return replace(answered_only, failures=failures)


def mix_failures(interval: Interval, share: float, value: float) -> Interval:
    """Return a mean with its interval if a share of the questions has a value instead of no answer."""
    mean, low, high = (
        end * (1 - share) + value * share
        for end in (interval.mean, interval.low, interval.high)
    )
    return Interval(mean, low, high, interval.n)


def find_differences(comparisons: Mapping[_Pair, Comparison]) -> dict[_Pair, Decision]:
    """Decide which models differ, with Holm's correction over all comparisons.

    If models are equally good, the probability of any wrong "different" is about 5 % or less, however many there are,
    and whichever comparisons are paired. docs/statistics.md has simulated figures.

    Args:
        comparisons: all comparisons that a page or a command shows, each once, by the names of both models.

    Returns:
        The decisions by the same names.
    """
    return dict(zip(comparisons, decide_all(list(comparisons.values())), strict=True))


def decide_all(comparisons: Sequence[Comparison]) -> list[Decision]:
    """Return the decisions about a family of comparisons, in the same order; see `find_differences`."""
    adjusted = holm([comparison.p_value for comparison in comparisons])
    with_failures = holm([comparison.decisive_p_value for comparison in comparisons])
    decisions = []
    for comparison, p_value, decisive in zip(
        comparisons, adjusted, with_failures, strict=True
    ):
        decisions.append(
            Decision(
                comparison=comparison,
                adjusted=p_value,
                adjusted_with_failures=decisive,
            )
        )
    return decisions


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that are adjusted for their number by Holm's method (1979), in the same order. NaN stays NaN."""
    values = np.asarray(p_values, dtype=float)
    order = []
    for index in np.argsort(values):
        if not math.isnan(values[index]):
            order.append(int(index))
    adjusted = np.full(len(values), math.nan)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, float(values[index]) * (len(order) - rank)))
        adjusted[index] = largest
    return [float(value) for value in adjusted]


def sign_test(more: int, less: int) -> float:
    """Return the probability that at least so many of all signs are positive if each is chance (exact)."""
    n = more + less
    return sum(math.comb(n, count) for count in range(more, n + 1)) / 2**n


def smallest_shares(
    n: int,
    level: float,
    power: float = 0.8,
) -> tuple[float | None, float | None]:
    """Return which share of n signs must be positive for a sign test to find it with a probability.

    Returns:
        The share if all other signs are 0, and the share if all others are negative. None stands for more than all.
    """
    from scipy.stats import binom

    shares = np.arange(1, 101) / 100
    needed: list[float | None] = []
    for less in (0, 1):
        wins = n + 1
        for more in range(n + 1):
            if sign_test(more, less * (n - more)) < level:
                wins = more
                break
        sufficient = shares[binom.sf(wins - 1, n, shares) >= power]
        needed.append(float(sufficient[0]) if len(sufficient) else None)
    return needed[0], needed[1]


def _compare(
    differences: Floats,
    weights: Floats,
    codes: NDArray[np.intp],
    looks: Looks = (),
) -> Comparison:
    """Test the weighted mean of differences.

    Args:
        weights: shape (n,): the weight of each instance. Their ratios count.
        codes: shape (n,): the number of each instance's cluster.
        looks: the looks, as for `compare_parts`.
    """
    n = len(differences)
    if not n:
        return Comparison(Interval(math.nan, math.nan, math.nan, 0), math.nan)
    wins = int((differences > _EQUAL).sum())
    losses = int((differences < -_EQUAL).sum())
    mean = float(np.average(differences, weights=weights))
    shares = weights / weights.sum()
    sums = cluster_sums(differences * shares, codes)
    sizes = cluster_sums(shares, codes)
    variance = float(padded_squares(sums, sizes, np.ones((1, len(sums))))[0])
    spread = float((sizes**2).sum())
    quantile = normal_quantile()
    # The normal approximation of the sign-flip test: a difference is rejected if its distance from the mean, divided by
    # the root of the sum of the clusters' squares around it, is above the normal quantile. With few clusters no
    # difference can be rejected at a high level, so the statistic is limited.
    p_value = two_sided_p_value(
        min(abs(mean) / math.sqrt(variance), 1 / math.sqrt(spread))
    )
    if looks:
        p_value = 2 * min(0.5, p_value_of_looks(p_value / 2, looks, FIRST_OF_ROUNDS))
        quantile = quantile_of(level_of_look(looks, SIGNIFICANCE / 2, FIRST_OF_ROUNDS))
    # The ends of the interval are the roots of a quadratic equation.
    level = quantile**2
    leading = 1 - level * spread
    linear = mean - level * float(sums @ sizes)
    low = -1.0
    high = 1.0
    if leading > 0:
        root = math.sqrt(max(linear**2 - leading * (mean**2 - level * variance), 0.0))
        low = max(low, min((linear - root) / leading, mean))
        high = min(high, max((linear + root) / leading, mean))
    return Comparison(
        Interval(mean, low, high, n), p_value, wins, losses, n - wins - losses
    )


def padded_squares(sums: Floats, sizes: Floats, counts: Floats) -> Floats:
    """Return the sum of the squares of the clusters of each sample, and of those that are added.

    Args:
        sums, sizes, counts: the clusters, as in `noninferiority.Clusters`. The sums can have the shape of the counts.

    Returns:
        Shape (samples,).
    """
    squares = (counts * sums**2).sum(axis=-1)
    fourth = (counts * sums**4).sum(axis=-1)
    spread = (counts * sizes**2).sum(axis=-1)
    # This is the mean square, weighted by the squares themselves, so that clusters without a difference do not count.
    # It is shrunk to the value of a cluster of mean size that differs in all its instances by 1.
    differ = squares > _EQUAL**2
    safe = np.where(differ, squares, 1.0)
    weight = np.where(differ, safe**2 / np.where(differ, fourth, 1.0), 0.0)
    typical = np.where(
        differ, weight * fourth / safe, 0.0
    ) + _PRIOR * spread / counts.sum(axis=1)
    return np.asarray(squares + PSEUDO * typical / (weight + _PRIOR))


def two_sided_p_value(z: float) -> float:
    """Return the two-sided p-value of a standard normal statistic of at least 0."""
    return 2 * upper_tail(z)


def upper_tail(z: float) -> float:
    """Return the probability that a standard normal statistic is larger."""
    from scipy.special import ndtr

    return float(ndtr(-z))
