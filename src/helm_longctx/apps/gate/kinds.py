"""Finds the kinds of tokens, such as digits or a script, at which two arms of a gate differ most."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from helm_longctx.apps.gate.distributions import TINY, Point
from helm_longctx.models.token_kinds import WORDS
from helm_longctx.results.statistics.noninferiority import ONE_SIDED

MUCH = 4
"""A kind of tokens is named if the divergence there is at least so many times as large as elsewhere."""


class KindShare(NamedTuple):
    """A kind of tokens at which the divergence is much larger than at all others.

    Args:
        divergence, elsewhere: mean divergences beyond the noise at its tokens, and at all others, in nats.
    """

    kind: str
    divergence: float
    elsewhere: float

    @property
    def text(self) -> str:
        """The finding in a sentence."""
        inside, outside = (f"{round(each, 6) + 0.0:.1g}" for each in (self.divergence, self.elsewhere))
        return f"It is mainly at {self.kind}: {inside} nats, and {outside} at all other tokens."


def find_main_kind(points: Iterable[Point]) -> KindShare | None:
    """Return the kind of tokens at which the divergence is at least `MUCH` times as large as elsewhere; None for none.

    Each question has a mean at the tokens of a kind, and one at all others, if it has both; texts in another language
    may have only one. Plain words are no kind. The means are compared by the test of Mann and Whitney, whose error is divided among the kinds.
    """
    questions: dict[tuple[int | None, str], list[Point]] = defaultdict(list)
    for point in points:
        questions[point.length, point.group].append(point)
    kinds = sorted({kind for rows in questions.values() for row in rows for kind in row.kinds} - {"", WORDS})
    found = []
    for kind in kinds:
        inside, outside = [], []
        for rows in questions.values():
            own = [row.kinds[kind] for row in rows if kind in row.kinds]
            count, total = sum(n for n, _ in own), math.fsum(n * mean for n, mean in own)
            every = [row.kinds[""] for row in rows if row.kinds]
            others = sum(n for n, _ in every) - count
            if count:
                inside.append(total / count)
            if others:
                outside.append((math.fsum(n * mean for n, mean in every) - total) / others)
        if inside and outside and _are_larger(inside, [MUCH * each for each in outside]) * len(kinds) < ONE_SIDED:
            found.append(KindShare(kind, fmean(inside), fmean(outside)))
    return max(found, key=lambda each: each.divergence / max(each.elsewhere, TINY), default=None)


def _are_larger(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the p-value of Mann and Whitney's test that values are larger than others. Less than `TINY` is equal."""
    from scipy.stats import mannwhitneyu

    rounded = [[round(each / TINY) for each in side] for side in (values, others)]
    return float(mannwhitneyu(*rounded, alternative="greater").pvalue)
