"""`compare --methods`, and the frontier of scores and costs.

Methods that answer as well as plain prompts must not be called better or worse, and rows that are as good as a cheaper
one must not stand on the frontier without a question mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from bench.decisions.figures import Figure, figure
from tests.support.simulations import place_on_frontier

from helm_longctx.results.statistics.comparison import (
    Decision,
    Pairs,
    compare_parts,
    decide_all,
)
from helm_longctx.results.statistics.intervals import Floats

SAMPLES = (50, 200)
"""Numbers of questions."""

METHODS = (2, 6)

SKILL = 0.6

SPREAD = 0.5
"""The part of the answers that follows the question's difficulty, the same for each method."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield errors and power of both."""
    random = np.random.default_rng(seed)
    for questions, methods in product(SAMPLES, METHODS):
        named = []
        on_frontier = []
        without_mark = []
        for _ in range(rounds):
            answers = draw_answers([SKILL] * (methods + 1), questions, random)
            decisions = compare_with(answers[1:], answers[0])
            named.append(any(decision.is_different for decision in decisions))
            # Row 0 is the cheapest one, and each further one is dearer.
            frontier = place_on_frontier(answers)
            on_frontier.append(bool(frontier.dearer))
            without_mark.append(bool(frontier.sure))
        called_better = []
        for _ in range(max(rounds // 4, 1)):
            better = draw_answers(
                [SKILL, SKILL + 0.2, *[SKILL] * (methods - 1)], questions, random
            )
            called_better.append(
                compare_with(better[1:], better[0])[0].verdict == "better"
            )
        yield figure(
            f"`compare --methods`, {methods} methods as good as plain prompts, {questions} questions: any is called"
            " better or worse",
            "at most 5 %",
            named,
            f"one that is 20 points better is found in {np.mean(called_better):.0%}",
        )
        yield figure(
            f"frontier, {methods + 1} equal rows, {questions} questions: a dearer one stands on it without a question"
            " mark",
            "at most 5 %",
            without_mark,
            f"one stands on it in {np.mean(on_frontier):.0%}",
        )


def draw_answers(
    skills: list[float], questions: int, random: np.random.Generator
) -> Floats:
    """Return right and wrong answers, shape (rows, questions)."""
    shape = (len(skills), questions)
    level = np.where(
        random.random(shape) < SPREAD,
        random.random((1, questions)),
        random.random(shape),
    )
    return np.asarray(level < np.array(skills)[:, None], dtype=float)


def compare_with(answers: Floats, reference: Floats) -> list[Decision]:
    """Compare each row with a reference, as `compare --methods` does."""
    groups = range(len(reference))
    comparisons = [
        compare_parts([Pairs(a=row, b=reference, groups=groups, weight=1.0)])
        for row in answers
    ]
    return decide_all(comparisons)
