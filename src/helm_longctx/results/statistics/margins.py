"""Tests whether the weighted mean of bounded values is above or below a margin, for one sample or many simulated ones.

The statistic is the distance of the mean from the margin, divided by its standard error. The variance is the larger one
of two: in the sign-flip test of `comparison.py`, and under the most probable distribution whose mean is the
margin (Owen 1988). The second one is needed, because few losses can be chance, and their small variance then makes a
drop look impossible. For right and wrong answers it is the variance of Tango's score test (1998). It knows that a loss
can be as large as the bounds allow, even if the sample has none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.comparison import padded_squares
from helm_longctx.results.statistics.intervals import Floats, cluster_sums
from helm_longctx.results.statistics.sequential import DIFFERENCES, Bounds

_STEPS = 30
"""Number of bisections."""

_ROUNDS, _POINTS = 3, 50
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
    def of(cls, values: Floats, weights: Floats, codes: NDArray[np.intp]) -> Clusters:
        """Return the clusters of one sample.

        Args:
            values, weights: shape (n,); the weights need not have the sum 1.
            codes: shape (n,): the number of each value's cluster.
        """
        shares = weights / weights.sum()
        clusters = np.stack([cluster_sums(values * shares, codes), cluster_sums(shares, codes)])
        kinds, counts = np.unique(clusters.round(15), axis=1, return_counts=True)
        return cls(kinds[0], kinds[1], counts[None].astype(float))


def margin_statistics(clusters: Clusters, margin: float | Floats, bounds: Bounds = DIFFERENCES) -> Floats:
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
    distance, spread = (counts * errors).sum(axis=1), counts @ sizes**2
    if bounds == DIFFERENCES:
        # Equal scores do not show how large a difference is, so the clusters that are added are like the others.
        products = counts @ (sums * sizes)
        flips = padded_squares(sums, sizes, counts) - 2 * margin * products + margin**2 * spread
    else:
        flips = padded_squares(errors, sizes, counts)
    sign = np.where(distance > 0, 1.0, -1.0)
    # The size of a cluster that the sample may lack: the mean size of the cluster of a value.
    farthest = spread * np.where(distance > 0, margin - bounds.low, bounds.high - margin)
    likely = _likely_squares(sign[:, None] * errors, counts, farthest)
    # With few clusters nothing can be rejected at a high level, which limits the statistic.
    return np.asarray(sign * np.minimum(abs(distance) / np.sqrt(np.maximum(flips, likely)), 1 / np.sqrt(spread)))


def _likely_squares(errors: Floats, counts: Floats, farthest: Floats) -> Floats:
    """Return the sum of the clusters' squares under the most probable distribution in which the errors have the mean 0.

    This distribution multiplies the share of an error e by 1 / (1 + t e), and may have a cluster that was not observed.

    Args:
        errors: shape (samples, kinds), whose sum is at least 0 in each sample.
        farthest: shape (samples,): the size of the smallest possible error, which is below 0.
    """
    smallest = np.maximum(np.where(counts > 0, -errors, 0).max(axis=1), np.maximum(farthest, 1e-12))[:, None]
    # From here on, the smallest error is -1, so the tilt t is between 0 and 1.
    scaled = np.where(counts > 0, errors / smallest, 0)
    low, high = np.zeros(len(counts)), np.ones(len(counts))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_above = (counts * scaled / (1 + middle[:, None] * scaled)).sum(axis=1) > 0
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    tilted = counts / (1 + low[:, None] * scaled)
    # What the observed clusters cannot balance is the share of one that was not observed.
    rest = np.maximum((tilted * scaled).sum(axis=1), 0)
    return np.asarray(((tilted * scaled**2).sum(axis=1) + rest) * smallest[:, 0] ** 2)


def margin_interval(clusters: Clusters, quantile: float, bounds: Bounds = DIFFERENCES) -> tuple[float, float]:
    """Return the means that the test of one sample does not reject.

    Args:
        quantile: the smallest statistic that rejects; infinite if nothing is rejected.
        bounds: the range of the values.

    Returns:
        The ends, which are exact to 10⁻⁵ of the bounds' distance.
    """
    mean = float(clusters.counts[0] @ clusters.sums)
    ends = []
    for bound in bounds:
        outside, inside = bound, mean
        for _ in range(_ROUNDS if abs(bound - mean) > 1e-9 else 0):
            # At a bound itself the variance can be 0.
            margins = np.linspace(outside, inside, _POINTS + 1)[1:]
            repeated = clusters._replace(counts=np.repeat(clusters.counts, _POINTS, axis=0))
            rejected = abs(margin_statistics(repeated, margins, bounds)) > quantile
            if not rejected[0]:
                inside = margins[0]
                continue
            last = int(rejected.argmin()) - 1
            outside, inside = margins[last], margins[last + 1]
        ends.append(float(outside))
    return ends[0], ends[1]
