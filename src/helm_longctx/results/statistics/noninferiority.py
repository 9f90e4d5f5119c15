"""Decides whether a candidate is worse than a base by more than a margin, in several parts such as lengths and depths.

In each part the null hypothesis of "no worse" is a drop of the margin or more, and the null hypothesis of "worse" is a
drop of at most the margin. Both keep their error over all looks at a growing sample (`looks.py`). docs/gate.md has the
rules and simulated errors; `noninferiority_power.py` has the power.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from helm_longctx.results.statistics.comparison import (
    SIGNIFICANCE,
    Comparison,
    Pairs,
    compare_parts,
    holm,
    join_pairs,
    upper_tail,
)
from helm_longctx.results.statistics.looks import level_of_look, next_looks, p_value_of_looks, quantile_of
from helm_longctx.results.statistics.margins import Clusters, margin_interval, margin_statistics
from helm_longctx.results.statistics.noninferiority_power import (
    Sample,
    clusters_to_decide,
    fewest_clusters,
    smallest_drop,
)

ONE_SIDED = SIGNIFICANCE / 2
"""Error of each one-sided decision over all looks, so that decisions agree with the 95 % intervals."""


class Verdict(IntEnum):
    """The outcome of a gate. The values are the exit statuses of the command."""

    NO_WORSE = 0
    WORSE = 1
    UNDECIDED = 3


@dataclass(frozen=True)
class Drop:
    """The decision on one part.

    Args:
        comparison: the candidate's score minus the base's. The interval contains the difference at all
            looks together in 95 % of cases.
        p_worse: the one-sided p-value of a drop of at most the margin, adjusted for the looks, and by Holm's method
            over all parts.
        verdict: `NO_WORSE` if the interval is above a drop of the margin, and `WORSE` if `p_worse` is below 0.025.
        more: number of instances that are still needed to decide; 0 if it is decided, or need not be.
        is_suspect: whether a depth has a drop that is certain, but not certain to be smaller than the margin.
    """

    comparison: Comparison
    p_worse: float
    verdict: Verdict
    more: int
    is_suspect: bool = False

    @property
    def is_worse(self) -> bool:
        """Whether the drop is larger than the margin."""
        return self.verdict is Verdict.WORSE


def decide_drops(
    parts: Mapping[str, Sequence[Pairs]],
    margin: float,
    power: float,
    looks: Mapping[str, Collection[int]] | None = None,
    depths: Collection[str] = (),
) -> dict[str, Drop]:
    """Decide for each part whether the candidate is worse than the base by more than a margin.

    Args:
        parts: the scores of the candidate (`a`) and of the base (`b`), by the part's name.
        margin: the largest drop that is accepted, above 0 and below 1.
        power: the probability of a decision that the number of missing instances is for.
        looks: the numbers of instances at earlier looks, by the part's name.
        depths: the parts that are depths, which need not be shown to be no worse, unless they are suspect.
    """
    tests = {name: _Test(pairs, margin, (looks or {}).get(name, ())) for name, pairs in parts.items()}
    worse = dict(zip(tests, holm([test.p_worse for test in tests.values()]), strict=True))
    dropped = dict(zip(depths, holm([tests[name].p_drop for name in depths]), strict=True))
    return {
        name: test.decide(worse[name], power, len(tests), dropped.get(name) if name in dropped else None)
        for name, test in tests.items()
    }


class _Test:
    """The tests of one part, before they are adjusted for the number of parts.

    Args:
        earlier: the numbers of instances at earlier looks.
    """

    def __init__(self, pairs: Sequence[Pairs], margin: float, earlier: Collection[int]):
        self._margin, self._found = margin, compare_parts(pairs)
        self._clusters = Clusters.of(*join_pairs(pairs))
        self._looks = next_looks(earlier, self._found.effect.n)
        statistic, drop = (float(margin_statistics(self._clusters, -each)[0]) for each in (margin, 0.0))
        self.p_worse = p_value_of_looks(upper_tail(-statistic), self._looks)
        self.p_drop = upper_tail(-drop)
        # A look at fewer instances does not decide, so it has no part of the error.
        fewest = fewest_clusters(margin, ONE_SIDED)
        self._able = tuple(each for each in self._looks if each >= fewest)

    def decide(self, p_worse: float, power: float, parts: int, p_drop: float | None) -> Drop:
        """Decide.

        Args:
            p_worse, p_drop: the adjusted p-values; `p_drop` is None for a part that is no depth.
            parts: number of parts.
        """
        level = level_of_look(self._able, ONE_SIDED) if self._looks[-1] in self._able else 0.0
        low, high = margin_interval(self._clusters, quantile_of(level))
        effect = replace(self._found.effect, low=low, high=high)
        verdict = Verdict.NO_WORSE if low > -self._margin else Verdict.UNDECIDED
        verdict = Verdict.WORSE if p_worse < ONE_SIDED else verdict
        is_open = verdict is Verdict.UNDECIDED
        is_suspect = is_open and p_drop is not None and p_drop < ONE_SIDED
        more = 0
        if is_open and (is_suspect or p_drop is None):
            # As many as are needed if the differences vary as in these.
            sample, n = Sample.of(self._clusters), self._found.effect.n
            looks = tuple(each / n for each in self._able)
            needed = clusters_to_decide(sample, self._margin, power, (ONE_SIDED, ONE_SIDED / parts), looks)
            more = max(1, round(n * needed / sample.clusters) - n)
        return Drop(replace(self._found, effect=effect), p_worse, verdict, more, is_suspect)


def visible_drop(clusters: int, changed: float, depths: int, power: float) -> float:
    """Return the smallest drop at one of several depths that keeps a candidate from passing.

    Args:
        clusters: number of clusters at the depth.
        changed: the share of right and wrong answers that differ by chance.
        power: the probability with which the drop is found.

    Returns:
        The drop, at most 1.
    """
    return smallest_drop(clusters, changed, 0.0, ONE_SIDED / depths, power)


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
