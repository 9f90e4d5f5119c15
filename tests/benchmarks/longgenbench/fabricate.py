"""Fabricate LongGenBench's files, texts and a judge's replies, which are the same on every machine."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longgenbench.tasks import CHECKS, FILES, is_yes
from tests.support.fabricate_words import words

TYPES = ("Week", "Floor", "Menu Week", "Block", "Day")
REPLIES = (
    "Yes",
    "no",
    " YES.\n",
    "No, it does not.",
    "eyes",
    "maybe",
    "\n",
    "yes or no",
)
"""The judge's replies; each prompt gets one of them."""
RECORD = {
    "prediction": " x\n#*# Week 2: y", "prefix": "#*# Week 1:", "type": "Week", "number": 52, "average_checks": 2.5,
    "checks_once": {"1": "a"}, "checks_range": {}, "checks_periodic": {"2": "b"},
    "judge": {"once 1": "yes", "periodic 2": "no"},
}  # fmt: skip


def build_longgenbench(root: Path) -> Path:
    """Write the files of both levels."""
    for length, file in FILES.items():
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rows(length), indent=1), encoding="utf-8")
    return root


def rows(length: int) -> list[dict[str, Any]]:
    """Return the rows of a level's file; one row has no checks of a kind, and another has a check of an entry after the
    last one."""
    rng = random.Random(length)
    records = []
    for name in TYPES:
        entries = rng.randint(42, 60)
        prefix = f"#*# {name} 1 ({{x}} é):"
        checks = [
            {
                str(n): words(rng, 3)
                for n in rng.sample(range(1, entries + 1), rng.randint(1, 9))
            }
            for _ in CHECKS
        ]
        row = {
            "prompt": f"Write {words(rng, 9)} *** started ***\n{prefix}",
            **dict(zip(CHECKS, checks, strict=True)),
        }
        records.append({**row, "type": name, "prefix": prefix, "number": entries})
    records[1]["checks_range"] = {}
    records[2]["checks_once"][str(records[2]["number"] + 1)] = "too much"
    return records


def outputs(length: int, restart: bool) -> list[str]:
    """Return a text for each row; texts are whole or empty, or have gaps, repeats or a misleading heading.

    Args:
        restart: whether some of them begin with the prompt's last line.
    """
    rng = random.Random(f"{length} {restart}")
    records = []
    for number, row in enumerate(rows(length)):
        numbers = list(range(2, row["number"] + 3))
        if number == 1:
            numbers = numbers[: len(numbers) // 3]
        if number == 2:
            numbers = sorted([*rng.sample(numbers, 30), *rng.sample(numbers, 30)])
        text = words(rng, 5) + "".join(
            _entry(rng, row["type"], n, number == 3) for n in numbers
        )
        records.append(
            f"{row['prefix'] if restart and number % 2 == 0 else ''}{text}\n*** finished ***\nIs it good?"
        )
    return [*records[:-1], " I cannot do that."]


def _entry(rng: random.Random, name: str, number: int, misleads: bool) -> str:
    before = f"After {name} {number - 1}, " if misleads and rng.random() < 0.3 else ""
    return f"\n#*# {before}{name} {number}: {words(rng, rng.choice((3, 90)))}"


def reply_to(prompt: str) -> str:
    """Return the judge's reply to a prompt."""
    return REPLIES[zlib.crc32(prompt.encode()) % len(REPLIES)]


def read_reply(reply: Any) -> dict[str, bool]:
    """Return the judge's verdict about one check."""
    return {"met": is_yes(reply)}
