"""Simulated scores with a known mean, and how often intervals and tests are right about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.statistics.comparison import compare_pairs
from helm_longctx.statistics.intervals import mean_interval

Scores = NDArray[np.float64]


class Case(NamedTuple):
    """How scores are made.

    Args:
        mean: their expected value.
        n: number of scores.
        size: scores in a cluster.
        share: correlation of scores in a cluster.
        binary: whether scores are 0 or 1, else they are between.
    """

    mean: float
    n: int
    size: int
    share: float
    binary: bool

    def draw(self, random: np.random.Generator, concentration: float = 4.0) -> Scores:
        """Scores in the order of their clusters."""
        clusters, mean = self.n // self.size, self.mean
        if self.binary:
            if not self.share:
                return (random.random(clusters * self.size) < mean).astype(float)
            scale = 1 / self.share - 1
            chances = random.beta(mean * scale, (1 - mean) * scale, (clusters, 1))
            return (random.random((clusters, self.size)) < chances).astype(float).ravel()
        shape = (mean * concentration, (1 - mean) * concentration)
        of_cluster, own = random.beta(*shape, (clusters, 1)), random.beta(*shape, (clusters, self.size))
        return np.where(random.random(own.shape) < np.sqrt(self.share), of_cluster, own).ravel()

    @property
    def groups(self) -> list[int] | None:
        """The cluster of each score."""
        return None if self.size == 1 else [number // self.size for number in range(self.n // self.size * self.size)]


def cases(share: float = 0.3) -> Iterator[Case]:
    """Right or wrong answers and continuous scores, alone and in clusters of 6."""
    for n in (100, 600):
        for mean in (0.02, 0.5, 0.98):
            for size in (1, 6):
                for binary in (True, False):
                    yield Case(mean, n, size, share if size > 1 else 0.0, binary)


def coverage(case: Case, rounds: int, seed: int) -> float:
    """The share of the rounds in which the interval has the expected value."""
    random, groups = np.random.default_rng(seed), case.groups
    hits = 0
    for _ in range(rounds):
        interval = mean_interval(case.draw(random), groups)
        hits += interval.low <= case.mean <= interval.high
    return hits / rounds


def false_positives(case: Case, rounds: int, seed: int, level: float = 0.05) -> float:
    """The share of the rounds in which two equally good models are told apart."""
    random, groups = np.random.default_rng(seed), case.groups
    pairs: Callable[[], tuple[Scores, Scores]] = lambda: (case.draw(random), case.draw(random))  # noqa: E731
    return sum(compare_pairs(*pairs(), groups).p_value < level for _ in range(rounds)) / rounds
