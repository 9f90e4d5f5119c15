"""The verdict of `reproduce` about a model and its own published number, and about another model; see `decisions.py`.

"Before" is the rule that took a published number without a known number of questions for exact.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.simulations import PROTOCOLS, find_verdicts, power_of_verdicts


def rows(rounds: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "protocol, right answers: a model differs from itself before; now with a known sample; with an unknown"
    yield "  one (no decision); the difference that the verdict names, and how often it is found"
    for (name, sizes), chance in product(PROTOCOLS.items(), (0.5, 0.8, 0.95, 0.99)):
        random = np.random.default_rng(seed)
        before, known, unknown, cannot_tell = find_verdicts(
            sizes, chance, rounds, random
        )
        power = power_of_verdicts(sizes, chance, rounds, random)
        yield f"{name}, {chance:g}: {before:.1%}; {known:.1%}; {unknown:.1%} ({cannot_tell:.1%}); {power}"
