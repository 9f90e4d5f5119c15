"""The verdict of `reproduce` about a model and its own published number, and about another model.

"Before" is the rule that took a published number without a known number of questions for exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from bench.decisions.figures import Figure, share_figure
from tests.support.simulations import PROTOCOLS, find_verdicts, power_of_verdicts


def rows(rounds: int, seed: int) -> Iterator[Figure]:
    """Yield for each protocol and score how often a model differs from itself."""
    for (name, sizes), chance in product(PROTOCOLS.items(), (0.5, 0.8, 0.95, 0.99)):
        random = np.random.default_rng(seed)
        verdicts = find_verdicts(sizes, chance, rounds, random)
        power = power_of_verdicts(sizes, chance, max(rounds // 4, 1), random)
        yield share_figure(
            f"`reproduce`, {name}, {100 * chance:g} % right: a model differs from its own number",
            "at most 5 %",
            verdicts.known,
            rounds,
            f"taking the published number for exact {verdicts.taken_for_exact:.1%}; sample unknown: differs"
            f" {verdicts.unknown:.1%}, cannot tell {verdicts.cannot_tell:.1%};"
            f" the difference that is named: {100 * power.difference:.1f} points, found in {power.share:.0%}",
        )
