"""Spearman's correlations: p-values of unrelated columns, and intervals of known correlations.

Scores of models are normal, or shares of right answers with ties; questions are right or wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.ranking import spearman

SIZES = (5, 7, 10, 15, 30, 60)
"""Numbers of models."""

CORRELATIONS = (0.5, 0.9)

STEPS = 20
"""Questions of a column with ties."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield errors of the test, and coverage of the interval."""
    random = np.random.default_rng(seed)
    for models, has_ties in product(SIZES, (False, True)):
        p_values = [_correlate(models, 0.0, has_ties, random)[0] for _ in range(rounds)]
        known = [p_value for p_value in p_values if not math.isnan(p_value)]
        yield figure(
            f"two unrelated columns of {models} models{' with ties' * has_ties}: p below 0.05",
            "at most 5 %",
            [p_value < 0.05 for p_value in known],
        )
    for models, correlation, has_ties in product(SIZES, CORRELATIONS, (False, True)):
        truth = find_truth(correlation, has_ties)
        hits = []
        widths = []
        for _ in range(rounds):
            _, low, high = _correlate(models, correlation, has_ties, random)
            if not math.isnan(low):
                hits.append(low <= truth <= high)
                widths.append(high - low)
        yield figure(
            f"rank correlation {truth:.2f} of {models} models{' with ties' * has_ties}: interval is right",
            "at least 95 %",
            hits,
            f"mean width {np.mean(widths):.2f}",
        )


def draw_columns(
    models: int, correlation: float, has_ties: bool, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return two columns of scores."""
    first = random.normal(size=models)
    own = random.normal(size=models)
    second = correlation * first + math.sqrt(1 - correlation**2) * own
    if not has_ties:
        return first, second
    return np.round(_share(first) * STEPS), np.round(_share(second) * STEPS)


def _share(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)))


def find_truth(correlation: float, has_ties: bool) -> float:
    """Return the rank correlation of very many models."""
    first, second = draw_columns(
        200_000, correlation, has_ties, np.random.default_rng(0)
    )
    return spearman(first, second).rho


def _correlate(
    models: int, correlation: float, has_ties: bool, random: np.random.Generator
) -> tuple[float, float, float]:
    correlation_test = spearman(*draw_columns(models, correlation, has_ties, random))
    return correlation_test.p_value, correlation_test.low, correlation_test.high
