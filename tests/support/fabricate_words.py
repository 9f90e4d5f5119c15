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
    """Return nonsense with accents, braces and other things that could break a template."""
    return " ".join(
        "".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count)
    )


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
