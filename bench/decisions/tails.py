"""Log-probabilities with rare misses, the loss over the position, and agreement with uneven grades."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bench.decisions.figures import Figure, figure
from numpy.typing import NDArray

from helm_longctx.apps.judge_checks.tables import (
    Coefficient,
    kappas,
    ordinal_alphas,
    table_interval,
    weighted_kappas,
)
from helm_longctx.results.statistics.intervals import (
    Interval,
    ValueKind,
    mean_interval,
    simultaneous_intervals,
)
from helm_longctx.results.statistics.rare_misses import interval_with_misses, summarize

Floats = NDArray[np.float64]

USUAL = -1.0
LOWEST = -12.0
SPREAD = 0.5
"""The mean log-probability of usual answers and of misses, and the standard deviation of both, in nats."""

CASES_OF_MISSES = [
    (0.0, 20),
    (0.0, 100),
    (0.03, 10),
    (0.03, 20),
    (0.03, 100),
    (0.03, 300),
    (0.1, 20),
    (0.1, 100),
    (0.1, 300),
    (0.01, 100),
]
"""Share of misses, and number of texts."""


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield the figures of all tables."""
    random = np.random.default_rng(seed)
    yield from measure_nats(rounds, random)
    yield from miss_rarely(rounds, random)
    yield from read_windows(rounds, random)
    yield from grade_unevenly(rounds, seed)


def contains(interval: Interval, value: float) -> bool:
    """Return whether an interval contains a value; one without ends does not."""
    return interval.low <= value <= interval.high


CASES_OF_NATS = [(0.0002, 0.00005, 48), (0.5, 0.05, 20)]
"""Mean and standard deviation of values between 0 and 1 that are no scores, and number of texts."""


def measure_nats(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often an interval of nats is right whose values could be scores, with its width beside that of scores."""
    for mean, spread, texts in CASES_OF_NATS:
        hits = []
        widths = []
        widths_of_scores = []
        for _ in range(rounds):
            values = mean + spread * random.normal(size=texts)
            interval = mean_interval(values, kind=ValueKind.NATS)
            hits.append(contains(interval, mean))
            widths.append(interval.high - interval.low)
            as_scores = mean_interval(np.clip(values, 0.0, 1.0))
            widths_of_scores.append(as_scores.high - as_scores.low)
        ratio = np.mean(widths_of_scores) / np.mean(widths)
        yield figure(
            f"mean of {texts} texts with {mean:g} ± {spread:g} nats: interval is right",
            "at least 95 %",
            hits,
            f"the method for scores is {ratio:.0f} times as wide",
        )


def miss_rarely(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often an interval of the mean is shown and wrong, and how often the one of the median is right."""
    for share, texts in CASES_OF_MISSES:
        true_mean = USUAL + share * (LOWEST - USUAL)
        true_median = find_median(share)
        wrong = []
        shown = []
        right_before = []
        right_median = []
        for _ in range(rounds):
            is_miss = random.random(texts) < share
            values = np.where(is_miss, LOWEST, USUAL) + SPREAD * random.normal(
                size=texts
            )
            interval = interval_with_misses(values)
            has_ends = not np.isnan(interval.low)
            shown.append(has_ends)
            wrong.append(has_ends and not contains(interval, true_mean))
            right_before.append(
                contains(mean_interval(values, kind=ValueKind.NATS), true_mean)
            )
            median = summarize(values.tolist(), range(texts)).median
            right_median.append(contains(median, true_median))
        note = (
            f"shown {np.mean(shown):.0%}; Student's is right in {np.mean(right_before):.1%};"
            f" the median's is right in {np.mean(right_median):.1%}"
        )
        is_limit = 0 < share < 0.03
        claim = "none: a limit" if is_limit else "at most 6 %"
        case = f"mean of {texts} texts, {100 * share:g} % at −12 nats: an interval that is wrong"
        yield figure(case, claim, wrong, note)


def find_median(share: float) -> float:
    """Return the true median of usual answers and a share of misses."""
    from scipy.special import ndtri

    # Misses are all below the median, so they only move its rank among the usual answers.
    return float(USUAL + SPREAD * ndtri((0.5 - share) / (1 - share)))


def read_windows(rounds: int, random: np.random.Generator) -> Iterator[Figure]:
    """Yield how often the intervals of all windows of a curve are right together."""
    for texts in (10, 20):
        for windows in (8, 32):
            together = []
            alone = []
            for _ in range(rounds):
                # Half of the variance belongs to the text, and half to the window.
                common = random.normal(size=(1, texts))
                values = np.sqrt(0.5) * (common + random.normal(size=(windows, texts)))
                groups = [range(texts)] * windows
                bands = simultaneous_intervals(list(values), groups)
                together.append(all(contains(band, 0.0) for band in bands))
                pointwise = [mean_interval(row, kind=ValueKind.NATS) for row in values]
                alone.append(all(contains(interval, 0.0) for interval in pointwise))
            yield figure(
                f"loss over the position, {windows} windows of {texts} texts: all intervals right",
                "at least 95 %",
                together,
                f"without the correction {np.mean(alone):.1%}",
            )


@dataclass(frozen=True)
class Raters:
    """Two raters whose true table of grades is known.

    Args:
        shares: the share of each grade, from the lowest.
        agreement: the share of items that both know; on the others they guess with these shares.
    """

    name: str
    shares: tuple[float, ...]
    agreement: float

    def table(self) -> Floats:
        """Return the share of each pair of grades."""
        shares = np.array(self.shares)
        by_chance = np.outer(shares, shares)
        return self.agreement * np.diag(shares) + (1 - self.agreement) * by_chance


COEFFICIENTS: dict[str, Coefficient] = {
    "kappa": kappas,
    "weighted kappa": weighted_kappas,
    "alpha": ordinal_alphas,
}


def grade_unevenly(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield how often the interval of a coefficient is right, where it is defined.

    The rows have random numbers of their own, so that they can be made without the others.
    """
    random = np.random.default_rng(seed)
    names = {
        "5 and 95 %": (0.05, 0.95),
        "10 and 90 %": (0.1, 0.9),
        "2, 3, 15 and 80 %": (0.02, 0.03, 0.15, 0.8),
        "25 % each": (0.25, 0.25, 0.25, 0.25),
    }
    for name, shares in names.items():
        for agreement in (0.3, 0.9):
            raters = Raters(name=name, shares=shares, agreement=agreement)
            for coefficient in COEFFICIENTS if len(shares) > 2 else ("kappa",):
                for items in (20, 50):
                    yield rate(raters, coefficient, items, rounds, random)


def rate(
    raters: Raters,
    coefficient: str,
    items: int,
    rounds: int,
    random: np.random.Generator,
) -> Figure:
    """Return how often the interval of a coefficient is right."""
    table = raters.table()
    compute = COEFFICIENTS[coefficient]
    size = len(table)
    truth = float(compute(table[None], np.arange(size, dtype=float))[0])
    samples = random.multinomial(items, table.ravel(), rounds)
    # Equal samples have the same interval, which takes thousands of drawn tables.
    distinct, repeats = np.unique(samples, axis=0, return_counts=True)
    hits: list[bool] = []
    widths: list[float] = []
    for counts, number in zip(distinct, repeats.tolist(), strict=True):
        pairs = np.repeat(np.arange(size * size), counts)
        first, second = np.divmod(pairs.astype(float), size)
        if len(np.unique([first, second])) < 2:
            continue  # no coefficient is defined
        low, high = table_interval(first, second, compute)
        hits += [low <= truth <= high] * number
        widths += [high - low] * number
    # Weights make the interval of a weak agreement a little too narrow.
    claim = "at least 94 %" if coefficient == "weighted kappa" else "at least 95 %"
    return figure(
        f"{coefficient} {truth:.2f}, grades with {raters.name}, {items} items: interval is right",
        claim,
        hits,
        f"defined and with an interval {len(hits) / rounds:.0%}; mean width {np.mean(widths):.2f}",
    )
