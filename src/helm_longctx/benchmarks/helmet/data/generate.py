"""Rows that fit a length, made by a seeded generator; and json_kv's, in the form of HELMET's files.

The generators of RULER's tasks are in `needles` and `ruler`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from helm_longctx.protocol.template import CONTEXT
from helm_longctx.sources.jsonl import Row

DEPTHS = 6
"""Evidence stands at this many depths, evenly from start to end, in turn."""

Maker = Callable[[int, random.Random, float], Row]
"""(units, generator, depth from 0 to 1) → row with that many units."""

_PROBE = 64


def fit_rows(
    make: Maker,
    count: int,
    seed: int,
    budget: int,
    measure: Callable[[list[Row]], list[int]],
    at_most: int | None = None,
) -> tuple[list[Row], list[int]]:
    """`count` rows of as many units as fit a budget of tokens (the same number in each), and their lengths.

    Args:
        measure: tokens of the rows' prompts.
        at_most: an upper bound on units.
    """

    def rows_of(units: int, number: int) -> list[Row]:
        return [make(units, random.Random(f"{seed}:{i}"), i % DEPTHS / (DEPTHS - 1)) for i in range(number)]

    one, two = (measure(rows_of(probe, 1))[0] for probe in (_PROBE, 2 * _PROBE))
    units = _PROBE + (budget - one) * _PROBE // max(1, two - one)
    units = max(1, units if at_most is None else min(units, at_most))
    while True:
        rows = rows_of(units, count)
        lengths = measure(rows)
        if max(lengths) <= budget or units == 1:
            return rows, lengths
        units = max(1, min(units - 1, units * budget // max(lengths)))


def json_kv(pairs: int, rng: random.Random, depth: float) -> Row:
    """A JSON object of UUID pairs, one to look up, and two looked-up ones from the same object."""
    items = [(uuid(rng), uuid(rng)) for _ in range(max(3, pairs))]
    at = round(depth * (len(items) - 1))
    demos = rng.sample(items[:at] + items[at + 1 :], 2)
    return {
        CONTEXT: "JSON data:\n" + json.dumps(dict(items), indent=1),
        "question": items[at][0],
        "answer": items[at][1],
        "demos": demos,
        "num_kvs": len(items),
        "depth": depth,
    }


def uuid(rng: random.Random) -> str:
    """A random UUID's form: 8-4-4-4-12 hexadecimal digits."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
