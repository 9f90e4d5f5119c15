"""Finds the kind of tokens, such as digits or a script, at which two arms of a gate mainly differ."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from helm_longctx.apps.gate.distributions import TINY, Point
from helm_longctx.models.token_kinds import WORDS
from helm_longctx.results.statistics.noninferiority import ONE_SIDED

_MUCH = 4
"""A kind of tokens is named if its log-probabilities are at least so many times as far apart as all others."""


class _KindChange(NamedTuple):
    """A kind of tokens whose log-probabilities are much farther apart than those of all other tokens.

    Args:
        change, elsewhere: means of how far they are apart beyond the noise, and of all others, in nats.
    """

    kind: str
    change: float
    elsewhere: float

    @property
    def text(self) -> str:
        """The finding in a sentence."""
        own = f"{round(self.change, 6) + 0.0:.1g}"
        others = f"{round(self.elsewhere, 6) + 0.0:.1g}"
        apart = f"the log-probabilities of these tokens are {own} nats apart, those of all others {others}"
        return f"It is mainly at {self.kind}: {apart}."


def find_main_kind(points: Iterable[Point]) -> _KindChange | None:
    """Return the kind of tokens that changes at least `_MUCH` times as much as all others, if there is one.

    It must do so by both measures of `Point.kinds`, so that tokens which are only less certain than others, or more,
    are not named. Each question has a mean of the tokens of a kind, and one of all others, if it has both. Texts in
    another language may have only one. The means are compared by the test of Mann and Whitney. Its error is divided
    among the kinds. Plain words are no kind.
    """
    questions: dict[tuple[int | None, str], list[Point]] = defaultdict(list)
    for point in points:
        questions[point.length, point.group].append(point)
    names: set[str] = set()
    for rows in questions.values():
        names.update(*(row.kinds for row in rows))
    kinds = sorted(names - {"", WORDS})
    changes = []
    for kind in kinds:
        inside = []
        outside = []
        for rows in questions.values():
            count, sums = _add([row.kinds[kind] for row in rows if kind in row.kinds])
            every, total = _add([row.kinds[""] for row in rows if row.kinds])
            if count:
                inside.append(sums / count)
            if every > count:
                outside.append((total - sums) / (every - count))
        if not inside or not outside:
            continue
        pairs = zip(np.transpose(inside), np.transpose(outside), strict=True)
        p_value = max(_are_larger(own, _MUCH * others) for own, others in pairs)
        if p_value * len(kinds) < ONE_SIDED:
            change = float(np.mean(inside, axis=0)[0])
            elsewhere = float(np.mean(outside, axis=0)[0])
            changes.append(
                _KindChange(
                    kind=kind,
                    change=change,
                    elsewhere=elsewhere,
                )
            )
    return max(
        changes, key=lambda kind: kind.change / max(kind.elsewhere, TINY), default=None
    )


def _add(rows: Sequence[tuple[int, float, float]]) -> tuple[int, np.ndarray]:
    """Return the number of tokens, and the sums of both measures."""
    count = 0
    sums = np.zeros(2)
    for tokens, one, other in rows:
        count += tokens
        sums += (tokens * one, tokens * other)
    return count, sums


def _are_larger(values: np.ndarray, others: np.ndarray) -> float:
    """Return the p-value of Mann and Whitney's test that values are larger than others. Less than `TINY` is equal."""
    from scipy.stats import mannwhitneyu

    own = np.rint(values / TINY)
    other = np.rint(others / TINY)
    return float(mannwhitneyu(own, other, alternative="greater").pvalue)
