"""Generates rows that fit a length, and the rows of json_kv. RULER's generators are in `needles` and `ruler`."""

import json
import random
from collections.abc import Callable

from helm_longctx.data.jsonl import Row
from helm_longctx.tasks.template import CONTEXT

DEPTHS = 6
"""Number of depths, evenly spaced from start to end. Rows take turns, so that all depths have equally many rows."""

Maker = Callable[[int, random.Random, float], Row]
"""(units, random generator, depth from 0 to 1) → a row with that many units."""

_PROBE = 64


def fit_rows(
    make: Maker,
    count: int,
    seed: int,
    budget: int,
    measure: Callable[[list[Row]], list[int]],
    at_most: int | None = None,
) -> tuple[list[Row], list[int]]:
    """Generate `count` rows with as many units as fit a budget of tokens. All rows have the same number of units.

    Args:
        measure: (rows) → the number of tokens of each row's prompt.
        at_most: most units of a row.

    Returns:
        The rows, and their prompts' numbers of tokens.
    """

    def rows_of(units: int, number: int) -> list[Row]:
        # Each row has its own generator, so that it does not depend on the number of rows.
        return [make(units, random.Random(f"{seed}:{i}"), i % DEPTHS / (DEPTHS - 1)) for i in range(number)]

    # Two probes give the tokens per unit and the tokens of the rest of the prompt. Units differ in length, so the
    # estimate can be too high; it is then lowered until all rows fit.
    one, two = (measure(rows_of(probe, 1))[0] for probe in (_PROBE, 2 * _PROBE))
    units = _PROBE + (budget - one) * _PROBE // max(1, two - one)
    units = max(1, units if at_most is None else min(units, at_most))
    while True:
        rows = rows_of(units, count)
        lengths = measure(rows)
        if max(lengths) <= budget or units == 1:
            return rows, lengths
        # At least one unit fewer each time, so the loop ends.
        units = max(1, min(units - 1, units * budget // max(lengths)))


def json_kv(pairs: int, rng: random.Random, depth: float) -> Row:
    """Generate a JSON object of UUID pairs, a key to look up, and two demonstrations from the same object."""
    items = [(uuid(rng), uuid(rng)) for _ in range(max(3, pairs))]
    at = round(depth * (len(items) - 1))
    # The demonstrations come from the same object, as in the official files, but never include the pair that is asked
    # for.
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
    """Draw random hexadecimal digits in the format of a UUID, 8-4-4-4-12."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
