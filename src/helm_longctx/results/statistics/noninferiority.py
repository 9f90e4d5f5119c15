"""Decides whether a candidate is worse than a base by more than a margin, in several parts such as lengths.

In each part the null hypothesis of "no worse" is a drop of the margin or more, and the null hypothesis of "worse" is a
drop of at most the margin. docs/gate.md has the rules and simulated errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from helm_longctx.results.statistics.comparison import (
    SIGNIFICANCE,
    Comparison,
    Pairs,
    compare_pairs,
    compare_parts,
    holm,
    p_value_of,
)
from helm_longctx.results.statistics.power import MOST_QUESTIONS, Spread, paired_spread, questions_needed

ONE_SIDED = SIGNIFICANCE / 2
"""Level of each one-sided test, so that decisions agree with the 95 % intervals."""


class Verdict(IntEnum):
    """The outcome of a gate. The values are the exit statuses of the command."""

    NO_WORSE = 0
    WORSE = 1
    UNDECIDED = 3


@dataclass(frozen=True)
class Drop:
    """The decision on one part.

    Args:
        comparison: the score of the candidate minus that of the base, with its 95 % interval.
        p_worse: the one-sided p-value of a drop of at most the margin, adjusted by Holm's method over all parts.
        verdict: `NO_WORSE` if the interval is above a drop of the margin, and `WORSE` if `p_worse` is below 0.025.
        more: number of instances that are still needed to decide; 0 if it is decided.
    """

    comparison: Comparison
    p_worse: float
    verdict: Verdict
    more: int

    @property
    def is_worse(self) -> bool:
        """Whether the drop is larger than the margin."""
        return self.verdict is Verdict.WORSE


def decide_drops(parts: Mapping[str, Sequence[Pairs]], margin: float, power: float) -> dict[str, Drop]:
    """Decide for each part whether the candidate is worse than the base by more than a margin.

    Args:
        parts: the scores of the candidate (`a`) and of the base (`b`), by the part's name.
        margin: the largest drop that is accepted, above 0 and below 1.
        power: the probability of a decision that the number of missing instances is for.
    """
    comparisons = {name: compare_parts(pairs) for name, pairs in parts.items()}
    adjusted = holm([_p_worse(parts[name], found, margin) for name, found in comparisons.items()])
    drops = {}
    for (name, found), p_worse in zip(comparisons.items(), adjusted, strict=True):
        verdict = _verdict(found, p_worse, margin)
        more = _missing(parts[name], found, margin, power) if verdict is Verdict.UNDECIDED else 0
        drops[name] = Drop(found, p_worse, verdict, more)
    return drops


def _p_worse(pairs: Sequence[Pairs], found: Comparison, margin: float) -> float:
    half = p_value_of(pairs, -margin) / 2
    return half if found.effect.mean < -margin else 1 - half


def _verdict(found: Comparison, p_worse: float, margin: float) -> Verdict:
    if p_worse < ONE_SIDED:
        return Verdict.WORSE
    return Verdict.NO_WORSE if found.effect.low > -margin else Verdict.UNDECIDED


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on all parts: worse if one part is worse, and no worse only if all parts are no worse.

    "Worse" in any part needs the correction for the number of parts. "No worse" in all parts does not: it is wrong only
    if the test of a part with too large a drop is wrong (intersection-union test, Berger 1982).

    Args:
        verdicts: at least one.
    """
    if Verdict.WORSE in verdicts:
        return Verdict.WORSE
    return Verdict.NO_WORSE if all(each is Verdict.NO_WORSE for each in verdicts) else Verdict.UNDECIDED


def changed_spread(changed: float, correlation: float = 1.0) -> Spread:
    """Return the spread of two equally good deployments of which a share of right and wrong answers differs.

    Args:
        changed: the share, 0 to 1.
        correlation: correlation of the differences in one cluster; 1 if it is not known.
    """
    return Spread(math.sqrt(changed), correlation, is_paired=True)


def sample_needed(spread: Spread, margin: float, power: float, cluster_size: float = 1.0) -> int:
    """Return the number of instances with which a candidate without a drop is shown to be no worse.

    Args:
        margin, power: values as for `decide_drops`.
        cluster_size: mean number of instances in a cluster.
    """
    return max(questions_needed(spread, margin, cluster_size, power), fewest_instances(margin))


def fewest_instances(margin: float) -> int:
    """Return the smallest number of instances that show a candidate to be no worse if all scores are equal."""

    def is_enough(size: int) -> bool:
        return compare_pairs(np.zeros(size), np.zeros(size)).effect.low > -margin

    size = 4
    while not is_enough(size):
        size = max(size + 1, math.ceil(1.01 * size))
    while is_enough(size - 1):
        size -= 1
    return size


def _missing(pairs: Sequence[Pairs], found: Comparison, margin: float, power: float) -> int:
    """Return how many more instances are needed, if the differences vary as in these.

    The candidate is taken to have no drop. If the sample is already large enough for that, the measured drop counts.
    """
    n = found.effect.n
    a, b = (np.concatenate([np.asarray(getattr(pair, side), dtype=float) for pair in pairs]) for side in "ab")
    groups = [group for pair in pairs for group in pair.groups]
    size = n / len(set(groups))
    if len(set(groups)) < 2:
        return sample_needed(changed_spread(1.0), margin, power, size) - n
    spread = paired_spread(a, b, groups)
    needed = sample_needed(spread, margin, power, size)
    if needed <= n:
        needed = questions_needed(spread, max(abs(found.effect.mean + margin), 1e-6), size, power)
    return max(1, min(needed, MOST_QUESTIONS) - n)
