"""Generates rows of RULER's needle tasks at any length.

The format is the same as in HELMET's files, which were made with the scripts of hsiehjackson/RULER. The text is our
own. A row has the official columns and `depth`.
"""

import random
from functools import cache

from wonderwords import RandomWord

from helm_longctx.benchmarks.helmet.data.generate import uuid
from helm_longctx.benchmarks.helmet.prompts import NIAH_NEEDLE
from helm_longctx.data.jsonl import Row
from helm_longctx.tasks.template import CONTEXT

KEYS = 4
"""Number of keys in a haystack of niah_multikey_1 and niah_multiquery."""

VALUES = 4
"""Number of values of the key in niah_multivalue."""

NOISE = "The lamp is lit. The door is shut. The floor is swept. Sit down now. Rest for a while."


def niah_noise(lines: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_single_1: one word key with a number, in a repeated passage."""
    (key,), value = word_keys(1, rng), _number(rng)
    haystack = [NOISE] * lines
    haystack.insert(round(depth * lines), _needle("numbers", key, value))
    return _needle_row("\n".join(haystack), "number", key, [value], depth)


def niah_prose(sentences: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_single_2: one word key with a number, in prose."""
    (key,), value = word_keys(1, rng), _number(rng)
    prose = _in_prose([_needle("numbers", key, value)], sentences, rng, depth)
    return _needle_row(prose, "number", key, [value], depth)


def niah_prose_uuid(sentences: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_single_3: one word key with a UUID, in prose."""
    (key,), value = word_keys(1, rng), uuid(rng)
    prose = _in_prose([_needle("uuids", key, value)], sentences, rng, depth)
    return _needle_row(prose, "uuid", key, [value], depth)


def niah_multikey_prose(sentences: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_multikey_1: four word keys with a number each, in prose.

    The question asks for the key at `depth`.
    """
    context, keys, values = _four_in_prose(sentences, rng, depth)
    return _needle_row(context, "number", keys[0], values[:1], depth)


def niah_multiquery(sentences: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_multiquery: four word keys with a number each, in prose.

    The question asks for all keys, of which one is at `depth`.
    """
    context, keys, values = _four_in_prose(sentences, rng, depth)
    return _needle_row(context, "numbers", f"{', '.join(keys[:-1])}, and {keys[-1]}", values, depth)


def niah_words(needles: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_multikey_2: a haystack of word keys with numbers. The question asks for one."""
    return _all_needles([(key, _number(rng)) for key in word_keys(needles, rng)], "numbers", depth)


def niah_uuids(needles: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_multikey_3: a haystack of UUID keys with UUIDs. The question asks for one."""
    return _all_needles([(uuid(rng), uuid(rng)) for _ in range(needles)], "uuids", depth)


def niah_values(sentences: int, rng: random.Random, depth: float) -> Row:
    """Make a row of niah_multivalue: one word key with four numbers, in prose, the first of them at `depth`."""
    (key,), values = word_keys(1, rng), [_number(rng) for _ in range(VALUES)]
    needles = [_needle("numbers", key, value) for value in values]
    return _needle_row(_in_prose(needles, max(VALUES, sentences), rng, depth), "numbers", key, values, depth)


def word_keys(count: int, rng: random.Random) -> list[str]:
    """Draw distinct keys such as `quick-hedgehog`; all of them if there are fewer than `count`."""
    adjectives, nouns = _words()
    keys = len(adjectives) * len(nouns)
    # The numbers of pairs are drawn, because a list of all pairs would have millions of texts.
    numbers = rng.sample(range(keys), min(count, keys))
    return [f"{adjectives[n % len(adjectives)]}-{nouns[n // len(adjectives)]}" for n in numbers]


def _needle(kind: str, key: str, value: str) -> str:
    return NIAH_NEEDLE.format(type_needle_v=kind, key=key, value=value)


def _needle_row(context: str, kind: str, query: str, answers: list[str], depth: float) -> Row:
    return {CONTEXT: context, "query": query, "type_needle_v": kind, "answer": answers, "depth": depth}


def _four_in_prose(sentences: int, rng: random.Random, depth: float) -> tuple[str, list[str], list[str]]:
    keys, values = word_keys(KEYS, rng), [str(n) for n in rng.sample(range(1_000_000, 10_000_000), KEYS)]
    needles = [_needle("numbers", key, value) for key, value in zip(keys, values, strict=True)]
    return _in_prose(needles, sentences, rng, depth), keys, values


def _in_prose(needles: list[str], sentences: int, rng: random.Random, depth: float) -> str:
    """Put the first needle at `depth` into prose, and the others at random positions."""
    prose = [_sentence(rng) for _ in range(sentences)]
    places = [round(depth * sentences), *(rng.randrange(sentences + 1) for _ in needles[1:])]
    # Needles are inserted from the back, so that an insertion does not move the places before it.
    for place, needle in sorted(zip(places, needles, strict=True), reverse=True):
        prose.insert(place, needle)
    return " ".join(prose)


def _all_needles(pairs: list[tuple[str, str]], kind: str, depth: float) -> Row:
    query, answer = pairs[round(depth * (len(pairs) - 1))]
    return _needle_row("\n".join(_needle(kind, *pair) for pair in pairs), kind[:-1], query, [answer], depth)


def _number(rng: random.Random) -> str:
    return str(rng.randrange(1_000_000, 10_000_000))


@cache
def _words() -> tuple[list[str], list[str]]:
    words = RandomWord()
    kinds = (words.filter(include_categories=[kind]) for kind in ("adjective", "noun"))
    # The words are sorted, because a draw from a set would differ from process to process.
    adjectives, nouns = (sorted({w.lower() for w in kind if w.isascii() and w.isalpha()}) for kind in kinds)
    return adjectives, nouns


def _sentence(rng: random.Random) -> str:
    """Make a sentence of about sixteen words.

    The haystack's prose comes from this small grammar, so that the package ships no text by others.
    """
    opening, subject, verb, thing, ending = map(rng.choice, (_OPENINGS, _SUBJECTS, _VERBS, _OBJECTS, _ENDINGS))
    return f"{opening}, {subject} {verb} {thing} {ending}."


_OPENINGS = (
    "In the morning", "After the rain", "Near the old bridge", "On the second floor", "By the end of the week",
    "Without much hurry", "For most of the year", "Before the meeting", "Along the northern road", "As far as we know",
)  # fmt: skip
_SUBJECTS = (
    "the gardener", "a retired captain", "the younger sister", "an old clock", "the night train", "our neighbour",
    "the school orchestra", "a quiet committee", "the ferry company", "a visiting painter", "the baker", "the council",
    "a flock of starlings", "the new librarian", "an amateur astronomer",
)  # fmt: skip
_VERBS = (
    "repaired", "measured", "described", "carried", "forgot", "collected", "painted", "studied", "exchanged",
    "examined", "counted", "remembered", "arranged", "discovered", "postponed",
)  # fmt: skip
_OBJECTS = (
    "the wooden gate", "a box of letters", "several maps", "the harvest figures", "a pair of lanterns",
    "the long staircase", "two silver spoons", "the weather records", "a borrowed violin", "the garden wall",
    "an unfinished letter", "the morning papers", "a basket of apples", "the harbour lights", "a set of keys",
)  # fmt: skip
_ENDINGS = (
    "and nobody objected", "while the kettle boiled", "before anyone noticed", "with unusual care",
    "although it was late", "as had been agreed", "in spite of the wind", "and wrote it down",
    "because the road was closed", "until the bells rang",
)  # fmt: skip
