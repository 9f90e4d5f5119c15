"""Says how far scores can be trusted, and which difference of two models a planned sample can detect.

A difference is detected if the comparison at 5 % finds it in 80 % of cases. The power holds for the comparisons that
decide: `compare_parts` for the same questions, and `compare_intervals` for different ones.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from helm_longctx.results.statistics.comparison import PSEUDO
from helm_longctx.results.statistics.intervals import (
    PRIOR_DEFF,
    Interval,
    cluster_sums,
    group_codes,
    inverse_size,
    mean_of_means,
    normal_quantile,
    t_quantile,
    wilson,
)


@dataclass(frozen=True)
class _VarianceComponents:
    """The variance of scores between groups, such as questions, and within them, such as between repeats.

    Args:
        between: variance of the groups' true means, at least 0; NaN for a single group.
        within: mean variance in a group; NaN if no group has two scores.
    """

    between: float
    within: float
    groups: int
    n: int

    @property
    def share_between(self) -> float:
        """The intraclass correlation: the share of the variance that is between groups; 0 if nothing varies."""
        total = self.between + self.within
        return self.between / total if total else 0.0

    @property
    def deviation_of_mean(self) -> float:
        """The standard deviation of the mean if the same questions are asked again."""
        return math.sqrt(self.within / self.n)


_ROUNDING = 1e-9
"""Standard deviations of scores in 0…1 that are smaller than this are errors of rounding."""


@dataclass(frozen=True)
class SignalToNoise:
    """How well a task tells models apart.

    Args:
        signal: standard deviation of the models' true means.
        noise: standard error of a model's mean.
    """

    signal: float
    noise: float

    @property
    def ratio(self) -> float:
        """Signal divided by noise; infinite if only the signal is more than an error of rounding, 0 if neither is."""
        if self.noise > _ROUNDING:
            return self.signal / self.noise
        if self.signal > _ROUNDING:
            return math.inf
        return 0.0


def variance_components(
    scores: ArrayLike,
    groups: Sequence[object],
) -> _VarianceComponents:
    """Divide the variance of scores into that between groups and that within groups.

    It is the analysis of variance with random effects (Searle, Casella and McCulloch 1992, section 3.6). With the
    repeats of questions, the variance within groups is the seed variance of Madaan et al. (arXiv 2406.10229).

    Args:
        scores: shape (n,).
        groups: the group of each score. If each group has one score, all variance is within groups.

    Raises:
        ValueError: `groups` has another length than `scores`.
    """
    values = np.asarray(scores, dtype=float)
    codes = group_codes(groups, len(values))
    sizes = np.bincount(codes)
    count = len(sizes)
    n = len(values)
    if count == n:
        return _VarianceComponents(
            0.0, float(values.var(ddof=1)) if n > 1 else math.nan, count, n
        )
    means = cluster_sums(values, codes) / sizes
    within = float(((values - means[codes]) ** 2).sum()) / (n - count)
    if count < 2:
        return _VarianceComponents(math.nan, within, count, n)
    mean_square = float((sizes * (means - values.mean()) ** 2).sum()) / (count - 1)
    # The mean size, corrected for groups of different sizes.
    size = (n - float((sizes**2).sum()) / n) / (count - 1)
    return _VarianceComponents(
        max((mean_square - within) / size, 0.0), within, count, n
    )


def signal_to_noise(means: ArrayLike, errors: ArrayLike) -> SignalToNoise:
    """Compare the variance of models' means with the variance of their errors.

    The observed variance of the means contains the variance of the errors. It is subtracted. Heineman et al. (arXiv
    2508.13144) and Madaan et al. (arXiv 2406.10229) choose benchmarks by such ratios.

    Args:
        means: shape (models,), at least two: the models' means on a task.
        errors: shape (models,): their standard errors.
    """
    noise = float(np.square(np.asarray(errors, dtype=float)).mean())
    observed = float(np.asarray(means, dtype=float).var(ddof=1))
    return SignalToNoise(math.sqrt(max(observed - noise, 0.0)), math.sqrt(noise))


POWER = 0.8
"""Probability with which a difference is to be shown."""

LARGEST_VARIANCE = 0.25
"""Variance of scores in 0…1 of which half are 0 and half are 1."""

_FEWEST_CLUSTERS = 4
"""With fewer clusters no power can be promised, because the intervals are too uncertain."""

_EXACT = 1e12
"""Number of questions of which a mean is exact."""

_STEPS = 0.02
"""What is added to the power, because the power jumps with the number of answers."""

MOST_QUESTIONS = 10_000_000
"""Largest number of questions that is proposed."""


@dataclass(frozen=True)
class Spread:
    """How much the scores of models vary over questions.

    Args:
        variance: of the difference of two models with the same questions, or of the scores of one of two models with
            different questions.
        correlation: correlation of these values in one cluster, 0 to 1.
        is_paired: whether both models answer the same questions.
        kurtosis: the mean fourth power of the differences, divided by the square of their mean square. None if they are
            differences of right and wrong answers, or if there are none.
    """

    variance: float
    correlation: float
    is_paired: bool
    kurtosis: float | None = None


def paired_spread(a: ArrayLike, b: ArrayLike, groups: Sequence[object]) -> Spread:
    """Return the spread of two models' differences on the same questions, from an earlier run.

    Args:
        a, b: shape (n,), n at least 2: the scores of both models, in the same order.
        groups: the group of each question.
    """
    differences = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    components = variance_components(differences, groups)
    squares = differences**2
    if squares.any():
        kurtosis = float((squares**2).mean() / squares.mean() ** 2)
    else:
        kurtosis = None
    return Spread(
        components.between + components.within, components.share_between, True, kurtosis
    )


@dataclass(frozen=True)
class PairedQuestions:
    """The questions of a task that each of two models answers.

    Args:
        questions: their number.
        clusters: the number of clusters of equal size that would tell as much: (Σm)² / Σm² for clusters of the sizes m.
    """

    spread: Spread
    questions: float
    clusters: float

    @property
    def inverse_size(self) -> float:
        """The variance of a mean over the sample, of values with the variance 1."""
        return (
            1 + (self.questions / self.clusters - 1) * self.spread.correlation
        ) / self.questions

    def kurtosis(self, of_values: float) -> float:
        """Return the kurtosis of the sums of the clusters, 3 for many independent values in each of them.

        Args:
            of_values: the kurtosis of the values.
        """
        return 3 + (of_values - 3) * self.inverse_size * self.clusters


def detectable_difference(samples: Sequence[PairedQuestions]) -> float:
    """Return the smallest difference of two models' unweighted means over tasks that is detected; infinite for none.

    Args:
        samples: the sample of each task, at least one; all paired or all not.
    """
    if not all(map(_is_certain, samples)):
        return math.inf
    return _search(lambda difference: _smallest(samples, difference))


def _search(smallest: Callable[[float], float]) -> float:
    """Return the smallest difference that is at least what is needed if it is as large; infinite if none up to 1 is."""
    low = 0.0
    high = 1.0
    if smallest(high) > high:
        return math.inf
    while high - low > 1e-5:
        middle = (low + high) / 2
        if smallest(middle) <= middle:
            high = middle
        else:
            low = middle
    return high


def detectable_from(own: Interval, published: Interval) -> float:
    """Return the smallest difference from a published mean that `compare_intervals` finds in 80 % of cases.

    It is infinite if no mean in 0…1 is so far away.

    Args:
        own: a mean with an interval of the width that the wanted one has.
        published: the mean. Without ends it is exact.
    """
    mean = max(published.mean, 1 - published.mean)
    own_size = 1 / inverse_size(own)
    published_size = _EXACT
    if published.low < published.high:
        published_size = 1 / inverse_size(published)
    spread = Spread(mean * (1 - mean), 0.0, is_paired=False)
    worse = [PairedQuestions(spread, own_size, own_size)]
    better = [PairedQuestions(spread, published_size, published_size)]
    smallest = _search(
        lambda difference: _smallest_unpaired_difference(better, worse, difference)
    )
    if smallest <= mean:
        return smallest
    return math.inf


def count_needed_questions(
    spread: Spread,
    difference: float,
    cluster_size: float = 1.0,
) -> int:
    """Return the smallest number of questions of each model with which a difference is detected.

    Args:
        difference: the wanted difference, above 0.
        cluster_size: mean number of questions in the cluster of a question, at least 1.

    Returns:
        The number, at most `MOST_QUESTIONS`.
    """

    def is_enough(questions: int) -> bool:
        sample = PairedQuestions(spread, questions, questions / cluster_size)
        return _is_certain(sample) and _smallest([sample], difference) <= difference

    low = 1
    high = 2
    while not is_enough(high) and high < MOST_QUESTIONS:
        low = high
        high = 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return min(high, MOST_QUESTIONS)


def _is_certain(sample: PairedQuestions) -> bool:
    """Whether there are enough clusters for a promise, or all questions are independent."""
    return sample.clusters >= _FEWEST_CLUSTERS or sample.clusters == sample.questions


def _smallest(samples: Sequence[PairedQuestions], difference: float) -> float:
    """Return what the difference must be at least if it is as large as given: see `compare_pairs`."""
    if not samples[0].spread.is_paired:
        return _smallest_unpaired_difference(samples, samples, difference)
    count = len(samples)
    errors = []
    squares = []
    typical = 0.0
    for sample in samples:
        # Models that never differed can differ on the next question.
        variance = sample.spread.variance or 1 / sample.questions
        error = variance * sample.inverse_size / count**2
        # The test does not subtract the mean from the clusters' sums.
        square = error + difference**2 / (sample.clusters * count**2)
        kurtosis = sample.kurtosis(sample.spread.kurtosis or 1 / variance)
        typical += kurtosis * square**2 / sample.clusters
        errors.append(error)
        squares.append(square)
    whole = float(np.sum(squares))
    limit = normal_quantile() * math.sqrt(whole + PSEUDO * typical / whole)
    return limit + _quantile() * math.sqrt(float(np.sum(errors)))


def _smallest_unpaired_difference(
    better: Sequence[PairedQuestions],
    worse: Sequence[PairedQuestions],
    difference: float,
) -> float:
    """Return what the difference must be at least if it is as large as given: see `compare_intervals`.

    Args:
        better, worse: the samples of both models in the same tasks. The better one has the variance of the spreads, and
            the variance of the worse one is rather larger.
    """
    means = []
    for sample in better:
        means.append(
            0.5 + math.sqrt(max(LARGEST_VARIANCE - sample.spread.variance, 0.0))
        )
    lower = [max(mean - difference, 0.5) for mean in means]
    ends = [_expected_end(better, means, 0), _expected_end(worse, lower, 1)]
    step = sum(
        0.5 / sum(sample.questions for sample in samples) for samples in (better, worse)
    )
    return (
        step
        + math.hypot(*(half for half, _ in ends))
        + _quantile() * math.sqrt(sum(error for _, error in ends))
    )


def _expected_end(
    samples: Sequence[PairedQuestions],
    means: Sequence[float],
    end: int,
) -> tuple[float, float]:
    """Return what `mean_of_means` returns on average: the distance from the mean to an end of its interval.

    Args:
        means: the mean of each task.
        end: 0 for the low end, 1 for the high one.

    Returns:
        The distance, and the variance of the mean and the distance together.
    """
    intervals = []
    variance = 0.0
    noise = 0.0
    for sample, mean in zip(samples, means, strict=True):
        of_answers = mean * (1 - mean)
        inverse, relative = _expected_inverse(sample, of_answers)
        low, high = wilson(mean, 1 / inverse, normal_quantile())
        intervals.append(Interval(mean, low, high, round(sample.questions)))
        variance += sample.inverse_size * of_answers
        # The widths of the tasks' intervals vary, too.
        noise += inverse * relative * of_answers
    whole = mean_of_means(intervals)
    count = len(samples)
    distance = (whole.mean - whole.low, whole.high - whole.mean)[end]
    return distance, (variance + noise * normal_quantile() ** 2) / count**2


def _expected_inverse(sample: PairedQuestions, variance: float) -> tuple[float, float]:
    """Return what `mean_interval` finds on average for right and wrong answers with a variance.

    Returns:
        1 / n of the n independent answers that have an interval of this width, and the squared relative error of the
        width.
    """
    largest = sample.questions / sample.clusters
    if largest == 1:
        return 1 / sample.questions, 0.0
    kurtosis = sample.kurtosis((1 - 3 * variance) / max(variance, 1 / sample.questions))
    weight = sample.clusters / kurtosis
    shrunk = (weight * sample.inverse_size + PRIOR_DEFF / sample.clusters) / (
        weight + PRIOR_DEFF
    )
    factor = (t_quantile(sample.clusters - 1) / normal_quantile()) ** 2
    return shrunk * factor, (kurtosis - 1) / (4 * sample.clusters)


@lru_cache(maxsize=1)
def _quantile() -> float:
    from scipy.special import ndtri

    return float(ndtri(POWER + _STEPS))
