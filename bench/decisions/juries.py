"""Krippendorff's alpha of juries, with grades and with other scores.

`tails` has the agreement of two raters with grades.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from bench.decisions.figures import Figure, figure

from helm_longctx.apps.judge_checks.measures import agreement_of_all
from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.tasks.judge_scores import krippendorff_alpha

JUDGES = 3

ITEMS = (20, 50)

SHARES = {
    "10 and 90 %": (0.1, 0.9),
    "2, 3, 15 and 80 %": (0.02, 0.03, 0.15, 0.8),
    "25 % each": (0.25, 0.25, 0.25, 0.25),
}

AGREEMENTS = (0.3, 0.9)

MISSING = 0.05
"""The share of verdicts that judges did not give."""

MANY = 20_000
"""Number of items whose alpha is taken for the true one."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield the coverage of intervals."""
    random = np.random.default_rng(seed)
    for (name, shares), knows, items in product(SHARES.items(), AGREEMENTS, ITEMS):
        truth = krippendorff_alpha(draw_grades(MANY, shares, knows, random), "ordinal")
        samples = (draw_grades(items, shares, knows, random) for _ in range(rounds))
        case = (
            f"alpha {truth:.2f} of {JUDGES} judges, grades with {name}, {items} items"
        )
        yield _cover(case, "at least 95 %", truth, samples, rounds)
    for noise, items in product((0.3, 0.1), ITEMS):
        truth = find_alpha(draw_scores(MANY, noise, random))
        samples = (draw_scores(items, noise, random) for _ in range(rounds))
        case = f"alpha {truth:.2f} of {JUDGES} judges with scores from 0 to 1, {items} items"
        # The jackknife's interval of a weak agreement is a little too narrow.
        yield _cover(case, "at least 94 %", truth, samples, rounds)


def _cover(
    case: str,
    claim: str,
    truth: float,
    samples: Iterator[Floats],
    rounds: int,
) -> Figure:
    hits = []
    widths = []
    for ratings in samples:
        alpha = agreement_of_all(list(ratings)).alpha
        if not math.isnan(alpha.low):
            hits.append(alpha.low <= truth <= alpha.high)
            widths.append(alpha.high - alpha.low)
    note = (
        f"with an interval {len(hits) / rounds:.0%}; mean width {np.mean(widths):.2f}"
    )
    return figure(f"{case}: interval is right", claim, hits, note)


def find_alpha(scores: Floats) -> float:
    """Return Krippendorff's alpha of very many items, shape (judges, items), without gaps."""
    within_items = scores.var(axis=0, ddof=1).mean()
    return float(1 - within_items / scores.var(ddof=1))


def draw_grades(
    items: int, shares: tuple[float, ...], knows: float, random: np.random.Generator
) -> Floats:
    """Return grades, shape (judges, items). A judge knows the right grade or guesses with the same shares.

    Args:
        knows: the share of items that all judges know.
    """
    size = len(shares)
    right = random.choice(size, size=items, p=shares)
    guess = random.choice(size, size=(JUDGES, items), p=shares)
    grades = np.where(random.random(items) < knows, right, guess).astype(float)
    grades[random.random(grades.shape) < MISSING] = math.nan
    return grades


def draw_scores(items: int, noise: float, random: np.random.Generator) -> Floats:
    """Return scores from 0 to 1, such as F1, shape (judges, items), many of which are 1."""
    right = np.minimum(random.beta(1.0, 0.5, items), 1.0)
    scores = right + noise * random.normal(size=(JUDGES, items))
    return np.asarray(np.clip(scores, 0.0, 1.0))
