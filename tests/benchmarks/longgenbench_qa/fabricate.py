"""Fabricate LongGenBench's files and odd answers, which are the same on every machine."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longgenbench_qa.tasks import (
    GSM8K_PROMPT,
    GSM8K_SCRIPT,
    MMLU_PROMPT,
    MMLU_SCRIPT,
    PROMPTS,
    QUESTIONS,
    SUBJECTS,
)
from tests.support.fabricate_words import words, write

ROWS = 80
SUBJECT_ROWS = 23
RECORD = {
    "prediction": "Answer_9:\nThe answer is 7.\n\nAnswer_10:\n4\n\n",
    "references": ["So 7.\n#### 7", "#### 5"],
}
SYSTEM = "Answer each question step by step, {} of nonsense."

_ENDS = ("The answer is {}.", "{}", "It is {} or 12.", "({}) is right, not (B)", "none", "", "Question: {}", "A_gold: {}",
         "A_model: 3\nThe answer is {}", "1,{}", "a\rQuestion: {}", "\x85A_gold: {}", "no\n\nmore: {}")  # fmt: skip


def build_longgenbench_qa(root: Path) -> Path:
    """Write all files under a data root."""
    rng = random.Random(7)
    write(root / QUESTIONS.path, gsm8k_rows(rng))
    write_data(root / PROMPTS.path, rng)
    for script in (GSM8K_SCRIPT, MMLU_SCRIPT):
        (root / script.path).write_text(
            f"x = {SYSTEM!r}.format('')\n", encoding="utf-8"
        )
    return root


def gsm8k_rows(rng: random.Random) -> list[dict[str, Any]]:
    """Return questions; some right answers have a comma."""
    numbers = [rng.choice(("7", "1,234", "0.5", "12")) for _ in range(ROWS)]
    return [
        {
            "question": f"{words(rng, 6)}?",
            "answer": f"{words(rng, 3)} = 3\n#### {number}",
        }
        for number in numbers
    ]


def write_data(folder: Path, rng: random.Random) -> None:
    """Write the folder `data` of the repository, with columns that pandas reads as numbers or as nan."""
    examples = {
        subject: "About it.\n\n"
        + "\n\n".join(
            f"Q: {words(rng, 4)}\n(A) x\nA: {words(rng, 3)}" for _ in range(5)
        )
        for subject in SUBJECTS
    }
    for path, text in (
        (GSM8K_PROMPT, f"Question_1: \n{words(rng, 5)}"),
        (MMLU_PROMPT, json.dumps(examples)),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    tests = folder / "MMLU/data/test"
    tests.mkdir(parents=True, exist_ok=True)
    for number, subject in enumerate(SUBJECTS):
        kinds = (
            lambda: words(rng, 2),
            lambda: str(rng.randint(1, 90)),
            lambda: rng.choice(("3", "", "None", "2.50")),
        )
        make = kinds[number % 3]
        rows = [
            [f"{words(rng, 5)}?", *(make() for _ in range(4)), rng.choice("ABCD")]
            for _ in range(SUBJECT_ROWS)
        ]
        if number % 5 == 0:
            rows[3][0] += "\n\nand more"
        with (tests / f"{subject}_test.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            csv.writer(file).writerows(rows)


def answer(rng: random.Random, fewest: int, most: int) -> str:
    """Return the text of a model with so many answers, of which some have an odd form."""
    count = rng.randint(fewest, most)
    ends = [
        rng.choice(_ENDS).format(rng.choice(("7", "1234", "0.5", "A", "C", "D")))
        for _ in range(count)
    ]
    return "\n\n".join(
        f"Answer_{number}:\n{words(rng, 3)} {end}" for number, end in enumerate(ends, 9)
    )
