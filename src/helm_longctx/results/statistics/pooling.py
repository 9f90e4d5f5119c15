"""Ranks models by all instances of all suites, of which each model can lack some, as ONEBench does.

Source: ONEBench (arXiv 2412.06745): each instance orders the models that have a score, and a Plackett-Luce model is
fitted to the pairs of these orders. Its code (`analysis/elo.py` at 9c31edb) fits it with the package choix, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.environment import require
from helm_longctx.results.statistics.comparison import Comparison, find_differences, two_sided
from helm_longctx.results.statistics.intervals import Floats, Interval, cluster_sums, group_codes, normal_quantile
from helm_longctx.results.statistics.ranking import Correlation, Rank, rank_ranges, spearman

PRIOR = 0.5
"""Number of wins and of losses that each model is given against the others together. Otherwise the strength of a model
that always wins would be infinite."""


@dataclass(frozen=True)
class Pooling:
    """The ranking of models over all instances.

    Args:
        strengths: the strength of each model with its 95 % interval. Their mean is 0. A model of strength a beats one
            of strength b with the probability 1 / (1 + exp(b - a)) on an instance on which they differ.
        ranks: the rank by the strength, with the range that all pairs allow.
    """

    strengths: Mapping[str, Interval]
    ranks: Mapping[str, Rank]

    def agreement(self, means: Mapping[str, float]) -> Correlation:
        """Return the rank correlation with other scores of the same models, such as their means."""
        return spearman([self.strengths[model].mean for model in means], list(means.values()))


def pool(scores: Mapping[str, ArrayLike], groups: Sequence[object]) -> Pooling:
    """Rank models by the instances on which they differ.

    The intervals are from the sandwich estimate of the variance over groups, which is at least the variance of
    independent comparisons.

    Args:
        scores: for each of two or more models shape (n,): its score on each instance; NaN if it has none.
        groups: the group of each instance.

    Raises:
        InputError: the package choix is not installed.
        ValueError: a model differs from no other model on any instance.
    """
    require("pooling", "the ranking over all instances")
    from choix import ilsr_pairwise_dense

    names, table = list(scores), np.array([np.asarray(each, dtype=float) for each in scores.values()])
    wins = np.array([(row > table).sum(axis=1) for row in table], dtype=float)
    compared = wins + wins.T
    if not compared.sum(axis=1).all():
        raise ValueError("a model differs from no other model on any instance")
    prior = PRIOR / (len(names) - 1) * (1 - np.eye(len(names)))
    strengths = np.asarray(ilsr_pairwise_dense(wins + prior), dtype=float)
    codes = group_codes(groups, table.shape[1])
    covariances = _covariances(table, compared + 2 * prior, strengths, codes)
    comparisons = {}
    for i, j in combinations(range(len(names)), 2):
        difference = float(strengths[i] - strengths[j])
        error = math.sqrt(max(float(c[i, i] + c[j, j] - 2 * c[i, j]) for c in covariances))
        half = normal_quantile() * error
        interval = Interval(difference, difference - half, difference + half, 0)
        comparisons[names[i], names[j]] = Comparison(interval, two_sided(abs(difference) / error))
    ranks = rank_ranges(dict(zip(names, strengths, strict=True)), find_differences(comparisons))
    errors = np.sqrt(np.max([np.diag(each) for each in covariances], axis=0))
    counts = (~np.isnan(table)).sum(axis=1)
    rows = zip(names, strengths, normal_quantile() * errors, counts, strict=True)
    return Pooling({name: Interval(float(s), float(s - h), float(s + h), int(n)) for name, s, h, n in rows}, ranks)


def _covariances(table: Floats, compared: Floats, strengths: Floats, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the covariances of the strengths: for independent comparisons, and over groups.

    Args:
        table: shape (models, instances).
        compared: shape (models, models): the number of instances on which two models differ.
    """
    chances = 1 / (1 + np.exp(strengths[None] - strengths[:, None]))
    information = -compared * chances * (1 - chances)
    np.fill_diagonal(information, -information.sum(axis=1) + np.diag(information))
    inverse = np.linalg.pinv(information)
    # The derivative of the likelihood: how much more each model won in a group than expected.
    gradients = np.array(
        [
            cluster_sums((row > table).T @ (1 - chance) - (row < table).T @ chance, codes)
            for row, chance in zip(table, chances, strict=True)
        ]
    )
    clusters = gradients.shape[1]
    clustered = inverse @ (gradients @ gradients.T) @ inverse * clusters / max(clusters - 1, 1)
    return np.asarray(inverse, dtype=float), np.asarray(clustered, dtype=float)
