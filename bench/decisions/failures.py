"""Simulates comparisons and certificates in which failures depend on what would have been answered.

python -m bench.decisions failures --rounds 4000
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
from bench.decisions.certify import CLAIM, DESIGN, SHORTEST
from bench.decisions.figures import Figure, figure

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.search import Search
from helm_longctx.results.statistics.comparison import (
    AskedPairs,
    Comparison,
    Pairs,
    compare_parts,
    decide_all,
)
from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.sequential import ThresholdDecision

SAMPLES = (300, 50)
"""Numbers of questions."""

SKILL = 0.6

Fails = Callable[[Floats, Floats, np.random.Generator], Floats]
"""(answers, difficulty of the questions, random) → the probability of each question to fail."""

LIMIT = "60 % of the wrong answers of one and 20 % of the other's at random fail"
"""Two rules at once, with about equal shares of failures: what no comparison of shares and bounds of both can see."""

RULES: dict[str, tuple[Fails | None, Fails | None]] = {
    "90 % of the wrong answers of one fail": (
        None,
        lambda right, level, random: 0.9 * (1 - right),
    ),
    "90 % of the right answers of one fail": (
        None,
        lambda right, level, random: 0.9 * right,
    ),
    "10 % of the right answers of one fail": (
        None,
        lambda right, level, random: 0.1 * right,
    ),
    "30 % of one fail at random": (
        None,
        lambda right, level, random: np.full(len(right), 0.3),
    ),
    "the hardest third of one fails": (
        None,
        lambda right, level, random: (level > 0.67).astype(float),
    ),
    "60 % of the wrong answers of both fail": (
        lambda right, level, random: 0.6 * (1 - right),
        lambda right, level, random: 0.6 * (1 - right),
    ),
    LIMIT: (
        lambda right, level, random: np.full(len(right), 0.2),
        lambda right, level, random: 0.6 * (1 - right),
    ),
}
"""How the first and the second model fail; None without failures."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield a row for each rule of failing, and rows of certificates."""
    for questions, (name, rule) in product(SAMPLES, RULES.items()):
        random = np.random.default_rng(seed)
        comparisons = [
            _compare(rule, (SKILL, SKILL), questions, random) for _ in range(rounds)
        ]
        decisions = [decide_all([comparison])[0] for comparison in comparisons]
        before = np.mean([comparison.p_value < 0.05 for comparison in comparisons])
        random = np.random.default_rng(seed)
        better = [
            _compare(rule, (SKILL + 0.2, SKILL), questions, random)
            for _ in range(rounds // 4)
        ]
        power = np.mean(
            [decide_all([comparison])[0].verdict == "better" for comparison in better]
        )
        lost = np.mean([comparison.p_value < 0.05 for comparison in better])
        yield figure(
            f"{questions} questions, two equal models, {name}",
            "none: a limit" if name == LIMIT else "better or worse: at most 5 %",
            [decision.is_different for decision in decisions],
            f"on the answers alone {before:.1%}; 20 points apart: {power:.0%} better, on the answers"
            f" alone {lost:.0%} different",
        )
    for loss, name in ((0.5, "falls from .95 to .45"), (0.0, "stays at .95")):
        yield _certify(loss, name, max(rounds // 4, 20), seed)


def _compare(
    rule: tuple[Fails | None, Fails | None],
    skills: tuple[float, float],
    questions: int,
    random: np.random.Generator,
) -> Comparison:
    level = random.random(questions)
    scores = []
    failed = []
    for skill, fails in zip(skills, rule, strict=True):
        # Half of the answers follow the question's difficulty.
        own = np.where(random.random(questions) < 0.5, level, random.random(questions))
        right = (own < skill).astype(float)
        chance = fails(right, level, random) if fails else np.zeros(questions)
        is_failed = random.random(questions) < chance
        scores.append(np.where(is_failed, np.nan, right))
        failed.append(is_failed.astype(float))
    is_answered = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    groups = list(range(questions))
    asked = AskedPairs(
        a=list(scores[0]),
        b=list(scores[1]),
        a_failed=list(failed[0]),
        b_failed=list(failed[1]),
        groups=groups,
    )
    pairs = Pairs(
        a=scores[0][is_answered],
        b=scores[1][is_answered],
        groups=list(np.flatnonzero(is_answered)),
        weight=1.0,
        asked=asked,
    )
    return compare_parts([pairs])


def _certify(loss: float, name: str, rounds: int, seed: int) -> Figure:
    """Return how often a model is called effective of whose wrong answers at the claim 95 % fail."""
    hits = [_is_effective(loss, 1000 * (seed + index)) for index in range(rounds)]
    claim = "called effective: at most 5 %" if loss else "called effective (power)"
    return figure(
        f"a certificate, the model {name}, 95 % of its wrong answers fail", claim, hits
    )


def _is_effective(loss: float, seed: int) -> bool:
    random = np.random.default_rng(seed)
    search = Search(replace(DESIGN, seed=seed))

    def reply(block: AskedBlock) -> KeptReply:
        is_long = block.length > SHORTEST
        is_right = block.has_text and random.random() < 0.95 - loss * is_long
        if is_long and not is_right and random.random() < 0.95:
            return KeptReply(None, "timeout")
        return KeptReply(float(is_right))

    while blocks := search.next_blocks():
        if any(SHORTEST < block.length < CLAIM for block in blocks):
            break
        for block in blocks:
            search.add(Answered(block, [reply(block) for _ in range(block.count)]))
    return search.decision is ThresholdDecision.ABOVE
