"""Fabricate AA-LCR's file, answers and a judge's replies, which are the same on every machine."""

from __future__ import annotations

import csv
import random
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.aa_lcr.tasks import (
    COLUMNS,
    COLUMNS_1_1,
    DOCUMENTS_1_1,
    PATH,
    QUESTIONS_1_1,
    score,
)
from helm_longctx.tasks.task import MetricValues
from tests.support.fabricate_words import words

ROWS = 12
REPLIES = (
    "CORRECT", "INCORRECT", "correct", "CORRECT.", " CORRECT", "INCORRECT\n", "", "The answer is CORRECT", "**CORRECT**",
    "CORRECT or INCORRECT", None, "Incorrect", "CORRECT\n\nINCORRECT",
)  # fmt: skip
RECORD = {"judge": "CORRECT"}


def build_aa_lcr(root: Path) -> Path:
    """Write the wheel's file, whose documents have characters that a CSV reader, a template or a chat could misread."""
    rng = random.Random(3)
    path = root / PATH
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for number in range(ROWS):
            documents = "\n\n".join(
                f'BEGIN DOCUMENT {n}:\n# "é", {{x}} {words(rng, 30)}\nEND DOCUMENT {n}'
                for n in (1, 2)
            )
            answer = (
                ["1. a (12)\n2. b", "NA", "7", "{y}, “z”"][number % 4]
                if number
                else "x" * 200_000
            )
            writer.writerow([f"{words(rng, 9)}, {{question}}?", answer, documents])
    build_version_1_1(root)
    return path


def build_version_1_1(
    root: Path, names: tuple[str, ...] = ("Başev.txt", "b.txt")
) -> None:
    """Write version 1.1's file of one question, and an archive whose names are decomposed, as some programs store them."""
    (root / QUESTIONS_1_1.path).parent.mkdir(parents=True, exist_ok=True)
    with (root / QUESTIONS_1_1.path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS_1_1)
        writer.writerow(("Q {x}?", "67.5%", "Reports", "set_1", "Başev.txt;b.txt"))
    with zipfile.ZipFile(root / DOCUMENTS_1_1.path, "w") as archive:
        for name in names:
            archive.writestr(
                f"lcr/Reports/set_1/{unicodedata.normalize('NFD', name)}",
                f"text of {name[0]}",
            )


def candidates() -> list[str]:
    """Return a model's answer for each row."""
    rng = random.Random(4)
    return [
        ["", "{context} {}", words(rng, 20), "CORRECT", "a\n\nb"][number % 5]
        for number in range(ROWS)
    ]


def replies() -> list[list[str | None]]:
    """Return the judge's reply on each row for each of three repeats; the last row never has a verdict."""
    rng = random.Random(5)
    weights = [9, 7] + [1] * (len(REPLIES) - 2)
    return [[*rng.choices(REPLIES, weights, k=ROWS - 1), "none"] for _ in range(3)]


def read_reply(reply: Any) -> MetricValues:
    """Return the judge's verdict in a reply."""
    return score({"judge": reply})
