"""Gives what all fabricated files share: sizes, nonsense, and a writer of JSON lines."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LENGTHS = {
    "4k": 4096,
    "8k": 8192,
    "16k": 16384,
    "32k": 32768,
    "64k": 65536,
    "128k": 131072,
}
PAIRS = dict(zip(LENGTHS, (50, 105, 220, 440, 900, 1800), strict=True))
PASSAGES = dict(zip(LENGTHS, (20, 50, 105, 220, 440, 1000), strict=True))
RANKED = dict(zip(LENGTHS, (14, 50, 130, 285, 600, 1000), strict=True))
DEMOS = 3
SYLLABLES = (
    "ba",
    "do",
    "ki",
    "lum",
    "ner",
    "pos",
    "ri",
    "shu",
    "tam",
    "vel",
    "é",
    "文",
    "{x}",
    "'s",
    "%",
)


def words(rng: random.Random, count: int) -> str:
    """Return nonsense with accents, braces and other things that could break a template.

    The draws are those of `rng.choices(SYLLABLES, k=rng.randint(1, 4))`, which take three times as long. A mirror has a
    million words.
    """
    draw = rng.random
    draw_bits = rng.getrandbits
    number = len(SYLLABLES)
    drawn: list[str] = []
    for _ in range(count):
        more = draw_bits(3)
        while more >= 4:
            more = draw_bits(3)
        word = SYLLABLES[int(draw() * number)]
        for _ in range(more):
            word += SYLLABLES[int(draw() * number)]
        drawn.append(word)
    return " ".join(drawn)


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
