"""Fabricate SQuALITY's stories and odd outputs, which are the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.squality.tasks import SOURCE
from tests.support.fabricate_words import words, write

STORIES = 12
RECORD = {
    "prediction": "The story is about robots.",
    "references": ["Robots running", "A story"],
}


def build_squality(root: Path) -> Path:
    """Write the file of the test set."""
    write(root / SOURCE.path, rows())
    return root


def rows() -> list[dict[str, Any]]:
    """Return the rows of the file."""
    rng = random.Random(4)
    return [
        {
            "metadata": {"passage_id": f"5{number:04d}", "uid": "x", "license": "x"},
            "document": f"{words(rng, 90)}\n\n{{x}} {words(rng, 5)}",
            "questions": [
                {
                    "question_text": f"{words(rng, 5)}?",
                    "question_number": position + 1,
                    "responses": [
                        {
                            "worker_id": "1",
                            "uid": "x",
                            "response_text": f" The robots {words(rng, 9)} were running.",
                        }
                        for _ in range(4)
                    ],
                }
                for position in range(5)
            ],
        }
        for number in range(STORIES)
    ]


def records() -> list[tuple[list[str], str]]:
    """Return the summaries of each question, with odd outputs that share a word with one of them."""
    rng = random.Random(5)
    made = []
    for row in rows():
        for question in row["questions"]:
            references = [
                response["response_text"] for response in question["responses"]
            ]
            parts = references[1].split()
            rng.shuffle(parts)
            outputs = (
                references[0],
                " ".join(parts),
                f"A robot ran. {words(rng, 9)}",
                "THE\n",
                references[3] * 3,
            )
            made += [
                (references, output)
                for output in (*outputs, f"{words(rng, 30)} the runs")
            ]
    return made * 2
