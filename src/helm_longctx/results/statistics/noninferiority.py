"""Decides whether a candidate is worse than a base by more than a margin, in several parts such as lengths and depths.

In each part the null hypothesis of "no worse" is a drop of the margin or more, and the null hypothesis of "worse" is a
drop of at most the margin. Both keep their error over all looks at a growing sample (`comparison.py`). docs/gate.md has
the rules and simulated errors.

The statistic is the distance of the mean from the margin, divided by its standard error. The variance is the larger one
of two: the variance in the sign-flip test of `comparison.py`, and the variance of the most probable distribution whose
mean is the margin (Owen 1988). The second one is needed, because few losses can be chance, and their small variance
then makes a drop look impossible. For right and wrong answers it is the variance of Tango's score test (1998). It knows
that a loss can be as large as the bounds allow, even if the sample has none.

How probably a sample decides is simulated with the decision itself: the differences of two deployments are
drawn, and tested as the answers of a gate are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.results.statistics.comparison import (
    Comparison,
    Pairs,
    compare_parts,
    holm,
    join_pairs,
    level_of_look,
    next_looks,
    p_value_of_looks,
    padded_squares,
    quantile_of,
    upper_tail,
)
from helm_longctx.results.statistics.intervals import Floats, cluster_sums
from helm_longctx.results.statistics.level import SIGNIFICANCE
from helm_longctx.results.statistics.power import MOST_QUESTIONS
from helm_longctx.results.statistics.sequential import DIFFERENCES, Bounds

_BISECTIONS = 30
"""Number of bisections."""

_ROUNDS = 3
_POINTS = 50
"""Number of rounds in which an end of an interval is searched, and of margins in each."""


class Clusters(NamedTuple):
    """The clusters of one sample or of many, of which each kind is listed once.

    Args:
        sums: shape (kinds,): the sum of the weighted values of a cluster.
        sizes: shape (kinds,): the sum of the weights of a cluster.
        counts: shape (samples, kinds): the number of clusters of each kind. The sizes of a sample have the sum 1.
    """

    sums: Floats
    sizes: Floats
    counts: Floats

    @classmethod
    def of(
        cls,
        values: Floats,
        weights: Floats,
        codes: NDArray[np.intp],
    ) -> Clusters:
        """Return the clusters of one sample.

        Args:
            values, weights: shape (n,); the weights need not have the sum 1.
            codes: shape (n,): the number of each value's cluster.
        """
        shares = weights / weights.sum()
        clusters = np.stack(
            [cluster_sums(values * shares, codes), cluster_sums(shares, codes)]
        )
        kinds, counts = np.unique(clusters.round(15), axis=1, return_counts=True)
        return cls(kinds[0], kinds[1], counts[None].astype(float))


def margin_statistics(
    clusters: Clusters,
    margin: float | Floats,
    bounds: Bounds = DIFFERENCES,
) -> Floats:
    """Return the statistic of each sample: positive if its mean is above the margin. It is normal if it is the margin.

    Args:
        margin: the compared mean, between the bounds, or one for each sample.
        bounds: the range of the values.

    Returns:
        Shape (samples,).
    """
    sums, sizes, counts = clusters
    margin = np.broadcast_to(margin, len(counts))
    errors = sums - margin[:, None] * sizes
    distance = (counts * errors).sum(axis=1)
    spread = counts @ sizes**2
    if bounds == DIFFERENCES:
        # Equal scores do not show how large a difference is, so the clusters that are added are like the others.
        products = counts @ (sums * sizes)
        flips = (
            padded_squares(sums, sizes, counts)
            - 2 * margin * products
            + margin**2 * spread
        )
    else:
        flips = padded_squares(errors, sizes, counts)
    is_above = distance > 0
    sign = np.where(is_above, 1.0, -1.0)
    # The size of a cluster that the sample may lack: the mean size of the cluster of a value.
    farthest = spread * np.where(is_above, margin - bounds.low, bounds.high - margin)
    likely = _likely_squares(sign[:, None] * errors, counts, farthest)
    statistic = abs(distance) / np.sqrt(np.maximum(flips, likely))
    # With few clusters nothing can be rejected at a high level, so the statistic is limited.
    return np.asarray(sign * np.minimum(statistic, 1 / np.sqrt(spread)))


def _likely_squares(errors: Floats, counts: Floats, farthest: Floats) -> Floats:
    """Return the sum of the clusters' squares under the most probable distribution in which the errors have the mean 0.

    This distribution multiplies the share of an error e by 1 / (1 + t e), and may have a cluster that was not observed.

    Args:
        errors: shape (samples, kinds). Their sum is at least 0 in each sample.
        farthest: shape (samples,): the size of the smallest possible error. That error is below 0.
    """
    observed = np.where(counts > 0, -errors, 0).max(axis=1)
    smallest = np.maximum(observed, np.maximum(farthest, 1e-12))[:, None]
    # From here on, the smallest error is -1, so the tilt t is between 0 and 1.
    scaled = np.where(counts > 0, errors / smallest, 0)
    low = np.zeros(len(counts))
    high = np.ones(len(counts))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_above = (counts * scaled / (1 + middle[:, None] * scaled)).sum(axis=1) > 0
        low = np.where(is_above, middle, low)
        high = np.where(is_above, high, middle)
    tilted = counts / (1 + low[:, None] * scaled)
    # What the observed clusters cannot balance is the share of one that was not observed.
    rest = np.maximum((tilted * scaled).sum(axis=1), 0)
    return np.asarray(((tilted * scaled**2).sum(axis=1) + rest) * smallest[:, 0] ** 2)


def margin_interval(
    clusters: Clusters,
    quantile: float,
    bounds: Bounds = DIFFERENCES,
) -> tuple[float, float]:
    """Return the means that the test of one sample does not reject.

    Args:
        quantile: the smallest statistic that rejects, or infinity if nothing is rejected.
        bounds: the range of the values.

    Returns:
        The ends, exact to 10⁻⁵ of the bounds' distance.
    """
    mean = float(clusters.counts[0] @ clusters.sums)
    ends = []
    for bound in bounds:
        outside = bound
        inside = mean
        for _ in range(_ROUNDS if abs(bound - mean) > 1e-9 else 0):
            # At a bound itself the variance can be 0.
            margins = np.linspace(outside, inside, _POINTS + 1)[1:]
            repeated = clusters._replace(
                counts=np.repeat(clusters.counts, _POINTS, axis=0)
            )
            rejected = abs(margin_statistics(repeated, margins, bounds)) > quantile
            if not rejected[0]:
                inside = margins[0]
                continue
            last = int(rejected.argmin()) - 1
            outside = margins[last]
            inside = margins[last + 1]
        ends.append(float(outside))
    return ends[0], ends[1]


_DRAWS = 8000
"""Number of simulated samples. The error of a probability is at most 0.6 points."""

_STEPS = 20
"""Number of steps to which the differences of an observed sample are rounded."""

Cells = tuple[tuple[float, int], ...]
"""The weight of each task, with the sum 1, and the number of its clusters."""

_Outcomes = tuple[tuple[float, float], ...]
"""The possible differences of a cluster, and the share of each, with the sum 1."""


class EqualClusters(NamedTuple):
    """A sample as if its clusters had equal sizes.

    Args:
        clusters: the number of clusters of equal size with the same precision.
        outcomes: the differences and their shares.
    """

    clusters: float
    outcomes: _Outcomes

    @classmethod
    def of(cls, clusters: Clusters) -> EqualClusters:
        """Return the sample of observed clusters."""
        sums, sizes, (counts,) = clusters
        shares: dict[float, float] = defaultdict(float)
        for value, share in zip(sums / sizes, counts * sizes, strict=True):
            shares[round(value * _STEPS) / _STEPS] += float(share)
        return cls(1 / float(counts @ sizes**2), tuple(shares.items()))


def changed_outcomes(changed: float, drop: float = 0.0) -> _Outcomes:
    """Return the differences of right and wrong answers of two deployments.

    Args:
        changed: the share of answers that differ by chance.
        drop: the share of answers that the candidate loses in addition.
    """
    worse = min(1.0, changed / 2 + drop)
    better = min(changed / 2, 1 - worse)
    return (1.0, better), (-1.0, worse), (0.0, 1 - better - worse)


@lru_cache(maxsize=4096)
def power_to_pass(
    cells: Cells,
    outcomes: _Outcomes,
    margin: float,
    level: float,
) -> float:
    """Return the probability that a sample shows a candidate to be no worse.

    Args:
        cells: the tasks.
        level: the one-sided level of the look.
    """
    return float(
        (_draw_statistics(cells, outcomes, margin) > quantile_of(level)).mean()
    )


def power_to_fail(
    cells: Cells,
    outcomes: _Outcomes,
    margin: float,
    level: float,
) -> float:
    """Return the probability that a sample shows a drop to be larger than the margin (0 or more)."""
    return float(
        (_draw_statistics(cells, outcomes, margin) < -quantile_of(level)).mean()
    )


def smallest_drop(
    clusters: int,
    changed: float,
    margin: float,
    level: float,
    power: float,
) -> float:
    """Return the smallest drop that is shown to be larger than a margin.

    Args:
        clusters: number of clusters.
        changed: the share of answers that differ by chance.
        level: the one-sided level of the test.
        power: the wanted probability.

    Returns:
        The drop, at most 1.
    """
    low = margin
    high = 1.0
    while high - low > 0.001:
        middle = (low + high) / 2
        shown = power_to_fail(
            ((1.0, clusters),), changed_outcomes(changed, middle), margin, level
        )
        if shown >= power:
            high = middle
        else:
            low = middle
    return high


def _draw_statistics(cells: Cells, outcomes: _Outcomes, margin: float) -> Floats:
    random = np.random.default_rng(0)
    kinds: dict[float, int] = defaultdict(int)
    # Tasks whose clusters have the same weight are one.
    for weight, clusters in cells:
        kinds[round(weight / clusters, 12)] += clusters
    values, shares = np.array(outcomes).T
    total = sum(size * clusters for size, clusters in kinds.items())
    sizes = np.repeat([size / total for size in kinds], len(values))
    shares = shares / shares.sum()
    counts = []
    for clusters in kinds.values():
        counts.append(random.multinomial(clusters, shares, _DRAWS))
    # Equal samples are tested once.
    drawn, indices = _find_equal_rows(np.concatenate(counts, axis=1))
    sums = sizes * np.tile(values, len(kinds))
    statistics = margin_statistics(Clusters(sums, sizes, drawn.astype(float)), -margin)
    return statistics[indices]


def _find_equal_rows(
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different rows of counts in ascending order, and the position of each row among them.

    NumPy compares rows byte by byte. Rows that are one number each are compared in a tenth of the time.
    """
    bases = [int(largest) + 1 for largest in counts.max(axis=0)]
    if math.prod(bases) > np.iinfo(np.int64).max:
        rows, positions = np.unique(counts, axis=0, return_inverse=True)
        return rows, positions.ravel()
    # The first column weighs most, so that numbers have the order of rows.
    weights = [math.prod(bases[column + 1 :]) for column in range(len(bases))]
    numbers = counts @ np.array(weights)
    _, firsts, positions = np.unique(numbers, return_index=True, return_inverse=True)
    return counts[firsts], positions


@lru_cache
def fewest_clusters(margin: float, error: float) -> int:
    """Return the smallest number of clusters whose first look shows a candidate to be no worse if all are equal."""
    level = level_of_look((1,), error)

    def is_enough(clusters: int) -> bool:
        equal = Clusters(
            np.zeros(1), np.array([1 / clusters]), np.array([[float(clusters)]])
        )
        return bool(margin_statistics(equal, -margin)[0] > quantile_of(level))

    return _smallest(is_enough, 1)


def count_needed_clusters(
    cells: Cells,
    changed: float,
    margin: float,
    power: float,
    error: float,
) -> int:
    """Return the number of clusters with which a candidate without a drop is shown to be no worse at the first look.

    Args:
        cells: the tasks. Their numbers of clusters keep their ratios.
        error: the one-sided error over all looks.
    """
    total = sum(clusters for _, clusters in cells)
    outcomes = changed_outcomes(changed)
    level = level_of_look((1,), error)

    weights = [weight for weight, _ in cells]

    def passes(sizes: Iterable[int]) -> bool:
        sample = tuple(zip(weights, sizes, strict=True))
        return power_to_pass(sample, outcomes, margin, level) >= power

    def is_enough(wanted: int) -> bool:
        exact = []
        for _, clusters in cells:
            exact.append(wanted * clusters / total)
        # The tasks round up, and a few clusters more can have less power, because right answers have steps.
        down = [max(1, math.floor(size)) for size in exact]
        up = [max(1, math.ceil(size)) for size in exact]
        return (
            passes(down)
            and passes(up)
            and passes(math.ceil(size) + 1 for size in exact)
        )

    return _smallest(is_enough, 1)


def clusters_to_decide(
    sample: EqualClusters,
    margin: float,
    power: float,
    errors: tuple[float, float],
    looks: Sequence[float],
) -> int:
    """Return the number of clusters with which the next look decides, if the differences vary as in a sample.

    The candidate is taken to have no drop. If the sample is already large enough for that, the measured drop counts.

    Args:
        errors: the one-sided errors of "no worse" and "worse" over all looks.
        looks: the sizes at all looks until now, in shares of the sample.
    """
    even: _Outcomes = ()
    for value, share in sample.outcomes:
        even += ((value, share / 2), (-value, share / 2))

    def is_enough(wanted: int, outcomes: _Outcomes) -> bool:
        sizes = (
            *(round(1e6 * look) for look in looks),
            round(1e6 * wanted / sample.clusters),
        )
        levels = [level_of_look(sizes, error) for error in errors]
        return _expected_power(outcomes, wanted, margin, levels) >= power

    least = math.ceil(sample.clusters) + 1
    outcomes = sample.outcomes if is_enough(least, even) else even
    return _smallest(lambda wanted: is_enough(wanted, outcomes), least)


def _expected_power(
    outcomes: _Outcomes,
    clusters: int,
    margin: float,
    levels: Sequence[float],
) -> float:
    """Return about the probability of a decision, from the statistic of the expected sample.

    Args:
        levels: the one-sided levels of "no worse" and "worse".
    """
    from scipy.special import ndtr

    values, shares = np.array(outcomes).T
    sizes = np.full(len(values), 1 / clusters)
    expected = Clusters(values / clusters, sizes, clusters * shares[None])
    statistic = float(margin_statistics(expected, -margin)[0])
    mean = float(values @ shares)
    deviation = math.sqrt(max(float(values**2 @ shares) - mean**2, 1e-12) / clusters)
    # The statistic divides by an error that belongs to the margin, and differs from the deviation of the mean.
    ratio = abs(mean + margin) / max(abs(statistic), 1e-9) / deviation
    pass_level, fail_level = levels
    up = ratio * (statistic - quantile_of(pass_level))
    down = ratio * (-statistic - quantile_of(fail_level))
    return float(ndtr(up) + ndtr(down))


def _smallest(is_enough: Callable[[int], bool], least: int) -> int:
    """Return the smallest number that is enough, at most `MOST_QUESTIONS`, if more are enough, too."""
    low = least - 1
    high = least
    while high < MOST_QUESTIONS and not is_enough(high):
        low = high
        high = min(MOST_QUESTIONS, max(high + 1, math.ceil(1.5 * high)))
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


ONE_SIDED = SIGNIFICANCE / 2
"""Error of each one-sided decision over all looks, so that decisions agree with the intervals."""


class Verdict(IntEnum):
    """The outcome of a gate. The values are the exit statuses of the command."""

    NO_WORSE = 0
    WORSE = 1
    UNDECIDED = 3

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self is Verdict.UNDECIDED:
            return "cannot tell"
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Drop:
    """The decision on one part.

    Args:
        comparison: the candidate's score minus the base's. The interval contains the difference at all
            looks together with the level of intervals.
        p_worse: the one-sided p-value of a drop of at most the margin, adjusted for the looks, and by Holm's method
            over all parts.
        verdict: `NO_WORSE` if the interval is above a drop of the margin, and `WORSE` if `p_worse` is below `ONE_SIDED`.
        more: number of instances that are still needed to decide; 0 if it is decided, or need not be.
        is_suspect: whether a depth has a drop that is certain, but not certain to be smaller than the margin.
        base, candidate: the mean scores, 0 to 1.
        is_at_floor: whether the base's score is not above the margin. Then even a candidate without a right answer would
            not drop by more, and the candidate is no worse only if it is certain to be better.
    """

    comparison: Comparison
    p_worse: float
    verdict: Verdict
    more: int
    is_suspect: bool
    base: float
    candidate: float
    is_at_floor: bool

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
        depths: the parts that are depths. They need not be shown to be no worse, unless they are suspect.
    """
    earlier = looks or {}
    tests = {}
    for name, pairs in parts.items():
        tests[name] = _Test(pairs, margin, earlier.get(name, ()))
    worse = holm([test.p_worse for test in tests.values()])
    dropped = dict(
        zip(depths, holm([tests[name].p_drop for name in depths]), strict=True)
    )
    drops = {}
    for (name, test), p_worse in zip(tests.items(), worse, strict=True):
        drops[name] = test.decide(p_worse, power, len(tests), dropped.get(name))
    return drops


class _Test:
    """The tests of one part, before they are adjusted for the number of parts.

    Args:
        earlier: the numbers of instances at earlier looks.
    """

    def __init__(
        self,
        pairs: Sequence[Pairs],
        margin: float,
        earlier: Collection[int],
    ):
        self._margin = margin
        self._comparison = compare_parts(pairs)
        weights = [pair.weight for pair in pairs]
        self._base = _mean_score([pair.b for pair in pairs], weights)
        self._candidate = _mean_score([pair.a for pair in pairs], weights)
        self._clusters = Clusters.of(*join_pairs(pairs))
        self._looks = next_looks(earlier, self._comparison.effect.n)
        statistic = float(margin_statistics(self._clusters, -margin)[0])
        drop = float(margin_statistics(self._clusters, -0.0)[0])
        self.p_worse = p_value_of_looks(upper_tail(-statistic), self._looks)
        self.p_drop = upper_tail(-drop)
        # A look at fewer instances does not decide, so it has no part of the error.
        fewest = fewest_clusters(margin, ONE_SIDED)
        self._able = tuple(look for look in self._looks if look >= fewest)

    def decide(
        self,
        p_worse: float,
        power: float,
        parts: int,
        p_drop: float | None,
    ) -> Drop:
        """Decide.

        Args:
            p_worse, p_drop: the adjusted p-values. `p_drop` is None for a part that is no depth.
            parts: number of parts.
        """
        if self._looks[-1] in self._able:
            level = level_of_look(self._able, ONE_SIDED)
        else:
            level = 0.0
        low, high = margin_interval(self._clusters, quantile_of(level))
        effect = replace(self._comparison.effect, low=low, high=high)
        is_depth = p_drop is not None
        is_at_floor = self._base <= self._margin and low <= 0 and not is_depth
        verdict = Verdict.UNDECIDED
        if p_worse < ONE_SIDED:
            verdict = Verdict.WORSE
        elif low > -self._margin and not is_at_floor:
            verdict = Verdict.NO_WORSE
        is_open = verdict is Verdict.UNDECIDED
        is_suspect = is_open and p_drop is not None and p_drop < ONE_SIDED
        more = 0
        if is_suspect or (is_open and not is_depth and not is_at_floor):
            # As many as are needed if the differences vary as in these.
            sample = EqualClusters.of(self._clusters)
            n = self._comparison.effect.n
            looks = tuple(look / n for look in self._able)
            errors = (ONE_SIDED, ONE_SIDED / parts)
            needed = clusters_to_decide(sample, self._margin, power, errors, looks)
            more = max(1, round(n * needed / sample.clusters) - n)
        comparison = replace(self._comparison, effect=effect)
        return Drop(
            comparison=comparison,
            p_worse=p_worse,
            verdict=verdict,
            more=more,
            is_suspect=is_suspect,
            base=self._base,
            candidate=self._candidate,
            is_at_floor=is_at_floor,
        )


def _mean_score(scores: Sequence[ArrayLike], weights: Sequence[float]) -> float:
    """Return the weighted mean of the means of parts."""
    means = []
    for part in scores:
        means.append(float(np.mean(np.asarray(part, dtype=float))))
    return float(np.average(means, weights=weights))


def visible_drop(
    clusters: int,
    changed: float,
    depths: int,
    power: float,
) -> float:
    """Return the smallest drop at one of several depths that keeps a candidate from passing.

    Args:
        clusters: number of clusters at the depth.
        changed: the share of right and wrong answers that differ by chance.
        power: the probability with which the drop is shown.

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
    if all(verdict is Verdict.NO_WORSE for verdict in verdicts):
        return Verdict.NO_WORSE
    return Verdict.UNDECIDED
