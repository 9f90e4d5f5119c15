"""The verdict of `reproduce` about a model that is compared with its own published number, or with a better one.

Right and wrong answers are drawn twice: for the own runs, and for the published number. "Before" is the rule that took
a published number without a known number of questions for exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from helm_longctx.results.reproduction import Measurement, judge_agreement, published_interval
from helm_longctx.results.statistics.intervals import Interval, mean_interval, mean_of_means
from helm_longctx.results.statistics.power import detectable_from
from helm_longctx.tasks.protocols import Protocol, PublicationSource, Reported

SOURCE = PublicationSource("a page", "https://example.org", "2026-01-01")

SHAPES = {
    "a bin of MRCR (100)": [100],
    "MRCR, eight bins (800)": [800],
    "Qwen's RULER (13 of 20)": [20] * 13,
    "HELMET's recall (4 of 100)": [100] * 4,
    "GraphWalks (300)": [300],
}
"""Numbers of questions of the entries whose mean is the number."""

CHANCES = (0.3, 0.5, 0.8, 0.95, 0.99)


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield the lines of all tables."""
    random = np.random.default_rng(seed)
    yield "shape, share of right answers: of a model and its own number before: differs; now, if the page says the"
    yield "  number of questions: differs; if not: differs, cannot tell; found at the difference that the verdict names"
    for (shape, sizes), chance in product(SHAPES.items(), CHANCES):
        before = sum(_is_outside(sizes, chance, random) for _ in range(rounds)) / rounds
        known, unknown = (find_verdicts(sizes, chance, is_known, rounds, random) for is_known in (True, False))
        power = find_power(sizes, chance, rounds, random)
        yield (
            f"{shape}, {chance:g}: {before:.1%}; {known['differs'] / rounds:.1%}; {unknown['differs'] / rounds:.1%},"
            f" {unknown['cannot tell'] / rounds:.1%}; {power}"
        )


def measure(sizes: Sequence[int], chance: float, random: np.random.Generator) -> Interval:
    """Return the number of a model by a protocol with entries of these sizes."""
    return mean_of_means([mean_interval(random.random(size) < chance) for size in sizes])


def judge(own: Interval, value: float, samples: int | None) -> str:
    """Return the verdict about an own number and a published one, 0 to 1."""
    measurement = Measurement("m", "m", own, 0.0, own.mean, ())
    row, protocol = Reported("m", 100 * value, "none", "H", SOURCE), _with_samples(samples)
    return judge_agreement(measurement, row, protocol, None).kind


def find_verdicts(
    sizes: Sequence[int], chance: float, is_known: bool, rounds: int, random: np.random.Generator
) -> Counter[str]:
    """Count the verdicts about a model that is compared with itself.

    Args:
        is_known: whether the number of questions of the published number is known.
    """
    pairs = [[measure(sizes, chance, random) for _ in range(2)] for _ in range(rounds)]
    return Counter(judge(own, published.mean, sum(sizes) if is_known else None) for own, published in pairs)


def find_power(sizes: Sequence[int], chance: float, rounds: int, random: np.random.Generator) -> str:
    """Return the difference that verdicts about a model and itself name on average, and how often it is found."""
    row = Reported("m", 100 * chance, "none", "H", SOURCE)
    published, typical = published_interval(row, _with_samples(sum(sizes))), []
    for _ in range(min(rounds, 100)):
        typical.append(detectable_from(measure(sizes, chance, random), published))
    found = float(np.mean(typical))
    worse = chance - found if chance >= found else chance + found
    pairs = [(measure(sizes, worse, random), measure(sizes, chance, random).mean) for _ in range(rounds)]
    hits = sum(judge(own, value, sum(sizes)) == "differs" for own, value in pairs)
    return f"{100 * found:.1f} points, {hits / rounds:.0%}"


def _with_samples(samples: int | None) -> Protocol:
    return Protocol("p", "P", "P", "", "", (), "mean over entries", samples=samples)


def _is_outside(sizes: Sequence[int], chance: float, random: np.random.Generator) -> bool:
    own, value = measure(sizes, chance, random), measure(sizes, chance, random).mean
    return not own.low <= value <= own.high
