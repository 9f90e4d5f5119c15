"""Simulates scores with a known mean, and counts how often intervals, tests and ranks are right about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.comparison import (
    Comparison,
    compare_intervals,
    compare_pairs,
    find_differences,
)
from helm_longctx.results.statistics.intervals import (
    Interval,
    cluster_errors,
    mean_interval,
    mean_of_means,
)
from helm_longctx.results.statistics.ranking import rank_ranges

MetricValues = NDArray[np.float64]

KINDS = ("right or wrong", "uniform", "skewed", "strongly skewed")
"""Scores of 0 and 1, between 0 and twice the mean (or mirrored), and of beta distributions with the sums 4 and 1 of
their parameters."""

MEANS = (0.02, 0.1, 0.5, 0.98)

CORRELATIONS = (0.0, 0.1, 0.3, 0.5, 0.9)

SHAPES = (
    (5, 1),
    (10, 1),
    (50, 1),
    (100, 1),
    (600, 1),
    (3, 10),
    (5, 10),
    (5, 100),
    (10, 6),
    (20, 6),
    (50, 6),
    (100, 6),
)
"""Numbers of clusters, and of scores in a cluster."""


class Case(NamedTuple):
    """A way to make scores.

    Args:
        mean: the expected value of a score.
        clusters: number of clusters.
        size: number of scores in a cluster.
        correlation: correlation of scores in a cluster.
    """

    kind: str
    mean: float
    clusters: int
    size: int
    correlation: float

    def draw(self, random: np.random.Generator) -> MetricValues:
        """Return scores in the order of their clusters."""
        of_cluster, own = (
            self._values(random, (self.clusters, size)) for size in (1, self.size)
        )
        is_shared = random.random(own.shape) < np.sqrt(self.correlation)
        return np.where(is_shared, of_cluster, own).ravel()

    def _values(
        self, random: np.random.Generator, shape: tuple[int, int]
    ) -> MetricValues:
        if self.kind == "right or wrong":
            return (random.random(shape) < self.mean).astype(float)
        if self.kind == "uniform":
            return self.mean + min(self.mean, 1 - self.mean) * random.uniform(
                -1, 1, shape
            )
        total = 4.0 if self.kind == "skewed" else 1.0
        return random.beta(self.mean * total, (1 - self.mean) * total, shape)

    @property
    def groups(self) -> list[int] | None:
        """Return the cluster of each score."""
        return (
            None
            if self.size == 1
            else [number // self.size for number in range(self.clusters * self.size)]
        )


def cases(kind: str, clusters: int, size: int) -> Iterator[Case]:
    """Yield a case for each mean and correlation."""
    for mean in MEANS:
        for correlation in CORRELATIONS if size > 1 else (0.0,):
            yield Case(kind, mean, clusters, size, correlation)


def coverage(case: Case, rounds: int, seed: int) -> float:
    """Return the share of the rounds in which the interval contains the expected value."""
    random = np.random.default_rng(seed)
    groups = case.groups
    intervals = (mean_interval(case.draw(random), groups) for _ in range(rounds))
    return (
        sum(interval.low <= case.mean <= interval.high for interval in intervals)
        / rounds
    )


def mean_over_tasks(
    scores: Sequence[MetricValues], groups: Sequence[Sequence[str]]
) -> Interval:
    """Return the mean of the means of tasks that can share clusters."""
    pairs = list(zip(scores, groups, strict=True))
    return mean_of_means(
        [mean_interval(*pair) for pair in pairs],
        [cluster_errors(*pair) for pair in pairs],
    )


def coverage_of_tasks(case: Case, tasks: int, rounds: int, seed: int) -> float:
    """Return the share of the rounds in which the interval of the mean over tasks with shared clusters contains the expected value."""
    random = np.random.default_rng(seed)
    whole = case._replace(size=case.size * tasks)
    groups = [str(number // case.size) for number in range(case.clusters * case.size)]
    hits = 0
    for _ in range(rounds):
        parts = np.split(whole.draw(random).reshape(case.clusters, -1), tasks, axis=1)
        interval = mean_over_tasks([part.ravel() for part in parts], [groups] * tasks)
        hits += interval.low <= case.mean <= interval.high
    return hits / rounds


def false_positives(case: Case, rounds: int, seed: int) -> float:
    """Return the share of the rounds in which two equally good models are told apart."""
    random = np.random.default_rng(seed)
    groups = case.groups
    comparisons = (
        compare_pairs(case.draw(random), case.draw(random), groups)
        for _ in range(rounds)
    )
    return sum(comparison.p_value < 0.05 for comparison in comparisons) / rounds


def effect_coverage(case: Case, rounds: int, seed: int) -> float:
    """Return the share of the rounds in which the interval of a difference contains the true one, 15 points or nearly the mean."""
    random = np.random.default_rng(seed)
    groups = case.groups
    worse = case._replace(mean=max(case.mean - 0.15, case.mean / 4))
    comparisons = (
        compare_pairs(case.draw(random), worse.draw(random), groups).effect
        for _ in range(rounds)
    )
    return (
        sum(
            effect.low <= case.mean - worse.mean <= effect.high
            for effect in comparisons
        )
        / rounds
    )


class Field(NamedTuple):
    """Models that answer questions.

    Args:
        chances: the share of right answers of each model.
        questions: number of questions of each model.
        is_shared: whether all models answer the same questions, whose difficulty varies, and are compared in pairs;
            otherwise only their intervals are compared.
    """

    chances: tuple[float, ...]
    questions: int
    is_shared: bool

    def family_error(self, rounds: int, seed: int) -> float:
        """Return the share of the rounds in which any two equally good models are told apart."""
        random = np.random.default_rng(seed)
        errors = 0
        for _ in range(rounds):
            decisions = find_differences(self._comparisons(self._draw(random)))
            errors += any(
                decision.is_different
                and self.chances[int(one)] == self.chances[int(other)]
                for (one, other), decision in decisions.items()
            )
        return errors / rounds

    def rank_coverage(self, rounds: int, seed: int) -> float:
        """Return the share of the rounds in which the ranges of all models contain their true ranks."""
        random = np.random.default_rng(seed)
        hits = 0
        first = [
            1 + sum(other > chance for other in self.chances) for chance in self.chances
        ]
        last = [
            sum(other >= chance for other in self.chances) for chance in self.chances
        ]
        for _ in range(rounds):
            scores = self._draw(random)
            means = {str(model): float(row.mean()) for model, row in enumerate(scores)}
            ranks = rank_ranges(
                means, find_differences(self._comparisons(scores))
            ).values()
            # Equally good models have all ranks from the first to the last of them.
            hits += all(
                rank.low <= a and b <= rank.high
                for rank, a, b in zip(ranks, first, last, strict=True)
            )
        return hits / rounds

    def _draw(self, random: np.random.Generator) -> MetricValues:
        chances = np.array(self.chances)[:, None]
        if self.is_shared:
            # Half of the questions are right or wrong for all models with the same chance, so answers are correlated.
            common = random.random(self.questions)
            is_common = random.random(self.questions) < 0.5
            noise = np.where(
                is_common, common, random.random((len(self.chances), self.questions))
            )
            return (noise < chances).astype(float)
        return (random.random((len(self.chances), self.questions)) < chances).astype(
            float
        )

    def _comparisons(self, scores: MetricValues) -> dict[tuple[str, str], Comparison]:
        if self.is_shared:
            return {
                (str(i), str(j)): compare_pairs(scores[i], scores[j])
                for i, j in combinations(range(len(scores)), 2)
            }
        intervals = [mean_interval(row) for row in scores]
        return {
            (str(i), str(j)): compare_intervals(intervals[i], intervals[j])
            for i, j in combinations(range(len(scores)), 2)
        }
