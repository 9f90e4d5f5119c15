"""Generators of the recall tasks' form, seeded, for any length.

The form is that of HELMET's files (json_kv: a JSON object of UUIDs; needles: RULER's niah_multikey_2, niah_multikey_3
and niah_multivalue); the text is our own. A row has the columns that the official file has.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache

from wonderwords import RandomWord

from helm_longctx.core.template import CONTEXT
from helm_longctx.helmet.data.filler import sentence
from helm_longctx.helmet.prompts import NIAH_NEEDLE
from helm_longctx.sources.jsonl import Row

DEPTHS = 6
"""Evidence stands at this many depths, evenly from start to end, in turn."""

VALUES = 4
"""Values of the key that niah_multivalue asks for."""

Maker = Callable[[int, random.Random, float], Row]
"""(units, generator, depth from 0 to 1) → row with that many units."""

_PROBE = 64


def fitting(
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


def niah_words(needles: int, rng: random.Random, depth: float) -> Row:
    """niah_multikey_2: a haystack of needles, word keys with numbers; one is asked for."""
    keys = [_key(number) for number in rng.sample(range(_keys()), min(needles, _keys()))]
    return _all_needles([(key, _number(rng)) for key in keys], "numbers", depth)


def niah_uuids(needles: int, rng: random.Random, depth: float) -> Row:
    """niah_multikey_3: a haystack of needles, UUID keys with UUIDs; one is asked for."""
    return _all_needles([(uuid(rng), uuid(rng)) for _ in range(needles)], "uuids", depth)


def niah_values(sentences: int, rng: random.Random, depth: float) -> Row:
    """niah_multivalue: one word key with four numbers in prose, the first at `depth`, the others anywhere."""
    key, values = _key(rng.randrange(_keys())), [_number(rng) for _ in range(VALUES)]
    prose = [sentence(rng) for _ in range(max(VALUES, sentences))]
    places = [round(depth * len(prose)), *(rng.randrange(len(prose) + 1) for _ in values[1:])]
    for place, value in sorted(zip(places, values, strict=True), reverse=True):
        prose.insert(place, NIAH_NEEDLE.format(type_needle_v="numbers", key=key, value=value))
    return {CONTEXT: " ".join(prose), "query": key, "type_needle_v": "numbers", "answer": values, "depth": depth}


def uuid(rng: random.Random) -> str:
    """A random UUID's form: 8-4-4-4-12 hexadecimal digits."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _all_needles(needles: list[tuple[str, str]], kind: str, depth: float) -> Row:
    lines = [NIAH_NEEDLE.format(type_needle_v=kind, key=key, value=value) for key, value in needles]
    query, answer = needles[round(depth * (len(needles) - 1))]
    return {CONTEXT: "\n".join(lines), "query": query, "type_needle_v": kind[:-1], "answer": [answer], "depth": depth}


def _number(rng: random.Random) -> str:
    return str(rng.randrange(1_000_000, 10_000_000))


@cache
def _words() -> tuple[list[str], list[str]]:
    words = RandomWord()
    kinds = (words.filter(include_categories=[kind]) for kind in ("adjective", "noun"))
    adjectives, nouns = (sorted({w.lower() for w in kind if w.isascii() and w.isalpha()}) for kind in kinds)
    return adjectives, nouns


def _keys() -> int:
    adjectives, nouns = _words()
    return len(adjectives) * len(nouns)


def _key(number: int) -> str:
    adjectives, nouns = _words()
    return f"{adjectives[number % len(adjectives)]}-{nouns[number // len(adjectives)]}"
