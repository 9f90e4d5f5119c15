"""Intervals of means over questions, clusters and means, at the level of `level.py`; summaries of scores over lengths."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.results.statistics.level import LEVEL
from helm_longctx.results.statistics.student import student_quantile

Floats = NDArray[np.float64]

ClusterWeights = Mapping[str, float]
"""The errors of a mean's clusters, by group: see `cluster_errors`."""


class ValueKind(Enum):
    """What values are. It chooses the method of an interval; the values that happen to occur never do."""

    SCORE = "score"
    """Between 0 and 1, as every score of a task."""

    DIFFERENCE = "difference"
    """A difference of two scores."""

    NATS = "nats"


FEW = 10
"""Wilson's interval of fewer independent right and wrong answers contains the true mean too rarely."""

_ROUNDING = 1e-9
"""Numbers of answers that differ by less are equal."""

_PRIOR_RATIO = 1.0
PRIOR_DEFF = 0.8
_PRIOR_MEANS = 2.0
"""Number of observations by which estimates are shrunk to their largest values: of the ratio of the variance of scores,
of the design effect, and of the ratio of the variance of a mean of means. With these values the intervals of skewed
scores, of few clusters, and of tasks of different sizes contain the true mean often enough, as
`python -m bench.decisions.intervals` and `python -m bench.decisions means` simulate."""


@dataclass(frozen=True)
class Interval:
    """A mean with its interval.

    Args:
        mean: the mean; NaN if there is no value.
        low, high: the ends; NaN for a single value without known bounds.
        n: number of values.
    """

    mean: float
    low: float
    high: float
    n: int

    def to_json(self) -> dict[str, float | int | None]:
        """Return the interval for programs: what is not finite is None, because JSON has no NaN."""
        values: dict[str, float | int | None] = {}
        ends = {"mean": self.mean, "low": self.low, "high": self.high}
        for name, value in ends.items():
            values[name] = value if math.isfinite(value) else None
        return {**values, "n": self.n}


def mean_interval(
    values: ArrayLike,
    groups: Sequence[object] | None = None,
    kind: ValueKind = ValueKind.SCORE,
) -> Interval:
    """Return the mean of values and its interval.

    For scores in 0…1 it is Wilson's score interval with the effective sample size. It stays in 0…1 and has a width
    even if all scores are equal. Fewer than `FEW` independent right and wrong answers have the exact interval of
    Clopper and Pearson (1934). Values of other kinds, and scores on another scale than 0…1, have Student's interval.
    Values of the same group are one cluster. Paired scores belong to `compare_pairs`.

    Args:
        values: shape (n,), in any order.
        groups: the group of each value, such as its question or its book. None if all values are independent.
        kind: what the values are.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    scores = np.asarray(values, dtype=float)
    codes = group_codes(groups, len(scores))
    if not scores.size:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(scores.mean())
    n = len(scores)
    # Wilson's interval is for proportions. It also holds for scores in 0…1: they vary no more than right and wrong
    # answers.
    if kind is not ValueKind.SCORE or scores.min() < 0 or scores.max() > 1:
        half = t_quantile(_freedom(codes)) * _clustered_error(scores, codes)
        return Interval(mean, mean - half, mean + half, n)
    is_independent = int(codes.max()) + 1 == n
    if not (is_independent and bool(np.isin(scores, (0, 1)).all())):
        # The variance is estimated from the clusters, so Student's quantile is used.
        low, high = wilson(
            mean, _effective_size(scores, codes), t_quantile(_freedom(codes))
        )
    elif n < FEW:
        low, high = _clopper_pearson(round(mean * n), n)
    else:
        low, high = wilson(mean, n, normal_quantile())
    return Interval(mean, low, high, n)


def simultaneous_intervals(
    samples: Sequence[ArrayLike],
    groups: Sequence[Sequence[object]],
) -> list[Interval]:
    """Return Student's intervals of several means of nats that are all right together in 95 %.

    Each has the level 1 - 5 % / (number of means), so that this holds however the means depend on each other
    (Bonferroni): the windows of a text do.

    Args:
        samples: the values of each mean, shape (n,).
        groups: the groups of each mean's values, as for `mean_interval`.
    """
    intervals = []
    for values, own_groups in zip(samples, groups, strict=True):
        numbers = np.asarray(values, dtype=float)
        codes = group_codes(own_groups, len(numbers))
        if not numbers.size:
            intervals.append(Interval(math.nan, math.nan, math.nan, 0))
            continue
        quantile = t_quantile(_freedom(codes), len(samples))
        half = quantile * _clustered_error(numbers, codes)
        mean = float(numbers.mean())
        intervals.append(Interval(mean, mean - half, mean + half, len(numbers)))
    return intervals


def ratio_interval(
    sums: ArrayLike,
    sizes: ArrayLike,
    groups: Sequence[object] | None = None,
) -> Interval:
    """Return the sum of sums divided by the sum of sizes: the mean of all values of several texts, in nats.

    Its error is that of the jackknife over groups, and it has Student's interval.

    Args:
        sums: shape (n,): the sum of the values of each text.
        sizes: shape (n,): their number. At least one is above 0.
        groups: the groups of the texts, as for `mean_interval`.

    Raises:
        ValueError: `groups` has another length than `sums`.
    """
    totals = np.asarray(sums, dtype=float)
    codes = group_codes(groups, len(totals))
    group_totals = cluster_sums(totals, codes)
    group_sizes = cluster_sums(np.asarray(sizes, dtype=float), codes)
    size = float(group_sizes.sum())
    mean = float(group_totals.sum()) / size
    shares = group_sizes / size
    if shares.max() == 1:
        return Interval(mean, math.nan, math.nan, len(totals))
    # The change of the ratio without the group.
    errors = (group_totals - mean * group_sizes) / (1 - shares) / size
    freedom = 1 / float((shares**2).sum()) - 1
    half = t_quantile(freedom) * math.sqrt(float((errors**2).sum()))
    return Interval(mean, mean - half, mean + half, len(totals))


def standard_error(values: ArrayLike, groups: Sequence[object] | None = None) -> float:
    """Return the standard error of a mean, clustered by group; NaN if there is one cluster.

    Args:
        values: shape (n,), in any order.
        groups: the groups, as for `mean_interval`.

    Raises:
        ValueError: `groups` has another length than `values`.
    """
    scores = np.asarray(values, dtype=float)
    if scores.size:
        return _clustered_error(scores, group_codes(groups, len(scores)))
    return math.nan


def mean_of_means(
    intervals: Sequence[Interval],
    clusters: Sequence[ClusterWeights] = (),
    weights: Sequence[float] = (),
) -> Interval:
    """Return the weighted mean of means, such as the means of tasks.

    Means in 0…1 have the exact interval of Clopper and Pearson (1934) with an effective sample size (Korn and Graubard
    1998): the number of right and wrong answers whose share varies as much as the mean. Other means combine the
    distances to the ends like standard errors, separately for each side (Zou and Donner 2008). Means that share
    clusters, such as tasks about the same books, are not independent. Their part of the variance is multiplied by the
    ratio of the variance with shared clusters to that for independent means.

    Args:
        clusters: the `cluster_errors` of each mean, in the order of the intervals. Empty if all means are independent.
        weights: the weight of each mean, with the sum 1. Empty for equal ones.

    Returns:
        The mean. A single mean is returned as it is. If one answer at most is wrong, the interval contains 1, and if
        one at most is right, it contains 0.
    """
    if len(intervals) < 2:
        if intervals:
            return intervals[0]
        return Interval(math.nan, math.nan, math.nan, 0)
    rows = np.array(
        [(interval.mean, interval.low, interval.high) for interval in intervals]
    )
    shares = np.array(weights or [1 / len(intervals)] * len(intervals))
    mean = float(shares @ rows[:, 0])
    sizes = np.array([interval.n for interval in intervals])
    n = int(sizes.sum())
    widths = rows[:, 2] - rows[:, 1]
    factors = shares**2 * _shared_factors(clusters, widths)
    if not (rows.min() >= 0 and rows.max() <= 1):  # NaN, too
        below = math.sqrt(float(factors @ (rows[:, 0] - rows[:, 1]) ** 2))
        above = math.sqrt(float(factors @ (rows[:, 0] - rows[:, 2]) ** 2))
        return Interval(mean, mean - below, mean + above, n)
    # By the width of its exact interval, a mean of few answers has even fewer. Only beside large means is that needed.
    if all(map(_is_exact, intervals)):
        inverses = 1 / sizes
    else:
        inverses = _inverse_sizes(rows[:, 0], widths)
    size = _size_of_means(rows[:, 0], inverses, shares, factors)
    if size < math.inf:
        low, high = _clopper_pearson(mean * size, size)
    else:
        low = mean
        high = mean
    wrong = []
    for interval in intervals:
        wrong.append((interval.n * (1 - interval.mean), interval.high == 1))
    right = []
    for interval in intervals:
        right.append((interval.n * interval.mean, interval.low == 0))
    return Interval(
        mean,
        0.0 if _is_one(right) else min(low, mean),
        1.0 if _is_one(wrong) else max(high, mean),
        n,
    )


def _is_exact(interval: Interval) -> bool:
    """Whether a mean of few answers has the interval of Clopper and Pearson."""
    if interval.n >= FEW:
        return False
    exact = _clopper_pearson(round(interval.mean * interval.n), interval.n)
    return (interval.low, interval.high) == exact


def _is_one(answers: Sequence[tuple[float, bool]]) -> bool:
    """Whether means have at most one answer of a kind.

    The true share of such answers can be so small that its interval must begin at 0.

    Args:
        answers: the number of these answers in each mean, and whether its own interval begins at 0. In a mean of means
            the number is not known, because the answers have different weights.
    """
    some = []
    for number, is_open in answers:
        if number > _ROUNDING:
            some.append((number, is_open))
    return len(some) < 2 and all(
        number <= 1 + _ROUNDING or is_open for number, is_open in some
    )


def _size_of_means(
    means: Floats,
    inverses: Floats,
    shares: Floats,
    factors: Floats,
) -> float:
    """Return the number of right and wrong answers whose share varies as much as a mean of means. It is infinite for none.

    As in `_effective_size`, the variance is estimated in relation to right and wrong answers with this mean.
    The fewer answers differ, the more it is shrunk to its largest value. It has that value if all wrong answers are in the
    mean with the largest part of the variance. Otherwise small tasks that happen to have no wrong answer would make the
    interval too narrow.

    Args:
        means, inverses, shares: each mean with its `inverse_size` and its weight.
        factors: the squares of the weights, and larger for means that share clusters.
    """
    mean = float(shares @ means)
    parts = factors * inverses
    if not parts.sum():
        return math.inf
    # The variance of a sample is too small by its share in the number of values.
    variances = np.minimum(means * (1 - means) * (1 + inverses), 0.25)
    whole = mean * (1 - mean)
    typical = float(shares @ variances)
    most = 0.25 / whole if whole > _ROUNDING else math.inf
    largest = min(float((parts / shares).max() / parts.sum()), most)
    # The number of observations behind the estimate, as in `count_informative`, if all means had the same variance.
    weight = (
        float(parts.sum() ** 2 / (parts**2 @ inverses)) * typical / (1 - 3 * typical)
    )
    observed = float(parts @ variances)
    ratio = _shrink(observed, whole * float(parts.sum()), largest, weight, _PRIOR_MEANS)
    return 1 / (ratio * float(parts.sum()))


def inverse_size(interval: Interval) -> float:
    """Return 1 / n, where n right and wrong answers have a Wilson interval of this width."""
    mean = np.array([interval.mean])
    width = np.array([interval.high - interval.low])
    return float(_inverse_sizes(mean, width)[0])


def _inverse_sizes(means: Floats, widths: Floats) -> Floats:
    """Return the `inverse_size` of intervals with these means and widths."""
    squares = np.minimum(widths, 0.999) ** 2
    linear = 4 * means * (1 - means) - 2 * squares
    roots = np.sqrt(linear**2 + 4 * (1 - squares) * squares)
    return (roots - linear) / (2 * (1 - squares)) / normal_quantile() ** 2


def error_of_means(
    errors: Sequence[float],
    clusters: Sequence[ClusterWeights] = (),
) -> float:
    """Return the standard error of the unweighted mean of means with these standard errors; see `mean_of_means`."""
    return math.sqrt(
        float(_shared_factors(clusters, errors) @ np.square(errors))
    ) / len(errors)


def cluster_errors(values: ArrayLike, groups: Sequence[str]) -> dict[str, float]:
    """Return the part of each group in the error of a mean: the sum of its deviations, divided by the number of values.

    Args:
        values: shape (n,), in any order.
        groups: the group of each value. Equal groups of two means are one cluster.
    """
    scores = np.asarray(values, dtype=float)
    sums = cluster_sums(scores - scores.mean(), group_codes(groups, len(scores))) / len(
        scores
    )
    return dict(zip(dict.fromkeys(groups), sums.tolist(), strict=True))


def group_codes(groups: Sequence[object] | None, size: int) -> NDArray[np.intp]:
    """Number the groups from 0. Without groups, each of the `size` values is a group.

    Raises:
        ValueError: there are more or fewer groups than values.
    """
    if groups is None:
        return np.arange(size)
    if len(groups) != size:
        raise ValueError(f"{len(groups)} groups for {size} values")
    # NumPy's `unique` would sort the groups, but groups of different types have no order.
    numbers = {}
    for number, group in enumerate(dict.fromkeys(groups)):
        numbers[group] = number
    return np.fromiter(map(numbers.__getitem__, groups), np.intp, size)


def cluster_sums(values: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return the sum of each cluster's values."""
    return np.bincount(codes, values).astype(float)


@lru_cache(maxsize=4096)
def t_quantile(freedom: float, together: int = 1) -> float:
    """Return the quantile of Student's distribution for a two-sided interval, with at least one degree of freedom.

    Args:
        together: the number of intervals that shall all be right in 95 % (Bonferroni).
    """
    degrees = max(freedom, 1)
    share = 1 - (1 - LEVEL) / (2 * together)
    if together == 1:
        return student_quantile(degrees, share)
    # `scipy.stats` computes the same by this function, but its import takes half a second.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


@lru_cache(maxsize=1)
def normal_quantile() -> float:
    """Return the quantile of the normal distribution for a two-sided interval: 1.96."""
    return NormalDist().inv_cdf((1 + LEVEL) / 2)


def wilson(mean: float, size: float, quantile: float) -> tuple[float, float]:
    """Return the ends of Wilson's score interval (1927) of a proportion.

    Args:
        mean: the proportion, 0 to 1.
        size: number of independent values; it need not be whole.
        quantile: the quantile of the normal distribution or of Student's distribution.
    """
    weight = quantile**2 / size
    middle = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * (mean * (1 - mean) + weight / 4)) / (1 + weight)
    # Rounding can put an end on the wrong side of a mean of 0 or 1.
    return max(0.0, min(middle - half, mean)), min(1.0, max(middle + half, mean))


def _clopper_pearson(right: float, n: float) -> tuple[float, float]:
    """Return the ends of the exact interval of a share (Clopper and Pearson 1934); the numbers need not be whole."""
    from scipy.special import betaincinv

    below = (1 - LEVEL) / 2
    wrong = n - right
    if right > _ROUNDING:
        low = betaincinv(right, wrong + 1, below)
    else:
        low = 0.0
    if wrong > _ROUNDING:
        high = betaincinv(right + 1, wrong, 1 - below)
    else:
        high = 1.0
    return float(low), float(high)


def _freedom(codes: NDArray[np.intp]) -> float:
    """Return the degrees of freedom: the effective number of clusters less one.

    The effective number is the number of clusters if they have equal sizes, and less if few of them are large (Carter,
    Schnepel and Steigerwald 2017, without the variation of the variances).
    """
    sizes = np.bincount(codes).astype(float)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) - 1


def _effective_size(scores: Floats, codes: NDArray[np.intp]) -> float:
    """Return the number of independent answers, each right or wrong, whose mean varies as much as the scores' mean.

    It is the number of scores, divided by the ratio of their variance to p (1 - p) and by the design effect of the
    clusters. Both are estimates. The fewer scores or clusters differ from the mean, the more the estimates are shrunk
    to their largest values: 1, and the size of the clusters.
    """
    errors = scores - scores.mean()
    squares = float((errors**2).sum())
    design = _design_effect(errors, squares, codes)
    whole = float(scores.mean() * (1 - scores.mean())) * len(scores)
    # Scores that repeat each other give no more information about the variance than about the mean.
    ratio = _shrink(
        squares, whole, 1.0, count_informative(errors) / max(design, 1), _PRIOR_RATIO
    )
    return len(scores) / (ratio * design)


def _design_effect(errors: Floats, squares: float, codes: NDArray[np.intp]) -> float:
    """Return the ratio of the variance of the mean over clusters to that over independent scores."""
    sizes = np.bincount(codes)
    clusters = len(sizes)
    if clusters == len(errors):
        return 1.0
    sums = cluster_sums(errors, codes)
    # The correction for the mean that was estimated from the same clusters.
    between = float((sums**2).sum()) * clusters / max(clusters - 1, 1)
    # The design effect of clusters in which all scores are equal: the mean size of the cluster of a score.
    largest = float((sizes**2).sum()) / len(errors)
    return _shrink(between, squares, largest, count_informative(sums), PRIOR_DEFF)


def _shared_factors(
    clusters: Sequence[ClusterWeights],
    widths: Sequence[float] | Floats,
) -> Floats:
    """Return for each mean the factor of its variance: more than 1 if it shares clusters with another one."""
    factors = np.ones(len(widths))
    if not any(clusters):
        return factors
    times = Counter(chain.from_iterable(clusters))
    rows = []
    groups: dict[str, None] = {}
    for row, of_mean in enumerate(clusters):
        if any(times[group] > 1 for group in of_mean):
            rows.append(row)
            groups |= dict.fromkeys(of_mean)
    if rows:
        # A row for each sample, a column for each cluster.
        errors = np.array(
            [[clusters[row].get(group, 0.0) for group in groups] for row in rows]
        )
        sums = errors.sum(axis=0)
        wide = [widths[row] for row in rows]
        # If all clusters have the same error in each sample, the widths are added instead of their squares.
        largest = sum(wide) ** 2 / float(np.square(wide).sum())
        ratio = _shrink(
            float((sums**2).sum()),
            float((errors**2).sum()),
            largest,
            count_informative(sums),
            PRIOR_DEFF,
        )
        # A ratio below 1 is mostly chance.
        factors[rows] = max(ratio, 1.0)
    return factors


def _shrink(
    part: float,
    whole: float,
    largest: float,
    weight: float,
    prior: float,
) -> float:
    """Return `part / whole`, a ratio from `weight` observations, shrunk to `largest` by `prior` observations."""
    ratio = part / whole if whole > 1e-12 else 0.0
    return (weight * ratio + prior * largest) / (weight + prior)


def count_informative(errors: Floats) -> float:
    """Return the effective number of errors behind an estimate of their variance: few, if only few are large."""
    squares = errors**2
    fourth = float((squares**2).sum())
    if fourth > 1e-24:
        return float(squares.sum()) ** 2 / fourth
    return 0.0


def _clustered_error(values: Floats, codes: NDArray[np.intp]) -> float:
    sums = cluster_sums(values - values.mean(), codes)
    clusters = len(sums)
    if clusters < 2:
        return math.nan
    # The mean over clusters of different sizes is a ratio of sums, and this is the error of such a ratio.
    return math.sqrt(float((sums**2).sum()) * clusters / (clusters - 1)) / len(values)


NOLIMA_SHARE = 0.85
"""Share of the score at the shortest length below which a length is not effective, after NoLiMa (arXiv 2502.05167)."""


def effective_length(scores: Mapping[int, float], threshold: float) -> int | None:
    """Return the longest length at which the score is at least the threshold, or None."""
    # By chance, a shorter length can be below the threshold, so the longest sufficient length counts.
    return max(
        (length for length, score in scores.items() if score >= threshold), default=None
    )


def possible_lengths(
    intervals: Mapping[int, Interval],
    score: float | None = None,
) -> list[int | None]:
    """Return the lengths that can be the effective one: the true one is among them in at least 95 % of samples.

    A length cannot be it if its score is below the threshold for sure, or if a longer one is above it for sure. The
    first test has half of the error. The longer lengths share the other half, because any of them can be wrong. The
    ends of the difference from the threshold combine the distances to the ends of both scores, as in `drop`.

    Args:
        intervals: the score by length, with their intervals.
        score: the benchmark's own threshold. Then there can be no effective length: None. Else it is `NOLIMA_SHARE` of
            the score at the shortest length.
    """
    lengths = sorted(intervals)
    if score is None and not intervals[lengths[0]].mean:
        return []
    possible = list[int | None]()
    if score is not None and not _is_any_above(intervals, lengths, score):
        possible.append(None)
    for index, length in enumerate(lengths):
        longer = lengths[index + 1 :]
        _, high = _difference(intervals, length, score, 1)
        if not high < 0 and not _is_any_above(intervals, longer, score):
            possible.append(length)
    return possible


def _is_any_above(
    intervals: Mapping[int, Interval],
    lengths: Sequence[int],
    score: float | None,
) -> bool:
    """Whether the score at any of the lengths is above the threshold, at half of the error over all of them."""
    from scipy.special import ndtri

    tail = (1 - LEVEL) / 2
    factor = ndtri(tail / max(len(lengths), 1)) / ndtri(tail)
    return any(
        _difference(intervals, length, score, factor)[0] > 0 for length in lengths
    )


def _difference(
    intervals: Mapping[int, Interval],
    length: int,
    score: float | None,
    factor: float,
) -> tuple[float, float]:
    """Return the ends of the score less the threshold, of intervals that are wider by a factor."""
    here = intervals[length]
    first = intervals[min(intervals)]
    if score is not None:
        return here.mean - score - factor * (
            here.mean - here.low
        ), here.mean - score + factor * (here.high - here.mean)
    if length == min(intervals):
        return 0.0, 0.0
    mean = here.mean - NOLIMA_SHARE * first.mean
    below = math.hypot(here.mean - here.low, NOLIMA_SHARE * (first.high - first.mean))
    above = math.hypot(here.high - here.mean, NOLIMA_SHARE * (first.mean - first.low))
    return mean - factor * below, mean + factor * above


def share_of_shortest(scores: Mapping[int, float]) -> float:
    """Return the threshold that is a share of the score at the shortest length."""
    return NOLIMA_SHARE * scores[min(scores)]


def length_means(scores: Mapping[int, float]) -> tuple[float, float, float]:
    """Return the means of the scores at n lengths, with equal weights, with the weights 1 to n and with n to 1.

    The weights stand for use mostly with long texts and mostly with short texts. Source: RULER (arXiv 2404.06654,
    section 4).
    """
    by_length = [scores[length] for length in sorted(scores)]
    weights = range(1, len(scores) + 1)
    plain = np.average(by_length)
    increasing = np.average(by_length, weights=weights)
    decreasing = np.average(by_length, weights=weights[::-1])
    return float(plain), float(increasing), float(decreasing)


def weigh_lengths(lengths: Iterable[int]) -> dict[int, float]:
    """Return the weight of each length's score in the area under the curve of scores, divided by the curve's width.

    The area is that of the trapezoidal rule. The axis is linear in tokens, so long lengths count most. Source: the
    tables of contextarena.ai, whose bins give its columns `AUC @128k` and `AUC @1M` in this way, and not with a
    logarithmic axis.

    Args:
        lengths: at least two.
    """
    ordered = sorted(lengths)
    steps = np.diff(np.array(ordered, dtype=float))
    # Half of each step belongs to the score at its start, and half to the score at its end.
    weights = (np.append(steps, 0) + np.insert(steps, 0, 0)) / (2 * steps.sum())
    return dict(zip(ordered, weights.tolist(), strict=True))


def drop(intervals: Mapping[int, Interval]) -> Interval:
    """Return the score at the shortest length minus that at the longest.

    Each end combines the distances to the ends of both (Zou and Donner 2008). This assumes independent scores. If the
    same questions are asked at both lengths, the interval is rather too wide.
    """
    first = intervals[min(intervals)]
    last = intervals[max(intervals)]
    mean = first.mean - last.mean
    # A difference is low if the first score is low and the last one high.
    below = math.hypot(first.mean - first.low, last.high - last.mean)
    above = math.hypot(first.high - first.mean, last.mean - last.low)
    return Interval(mean, mean - below, mean + above, first.n + last.n)
