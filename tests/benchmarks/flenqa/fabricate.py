"""Fabricate FLenQA's rows and odd answers, which are the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.flenqa.tasks import DATASETS, LENGTHS, SOURCE
from tests.support.fabricate_words import words, write

QUESTIONS = 5
RECORD = {
    "prediction": "It is not true",
    "dispersion": "random",
    "facts": ["Ben is old."],
}
ANSWERS = (
    "True", "False", "true.", "It is not true", "Not the true one, the false", "", "I refuse", "untrue", "TRUE or FALSE",
    "not a true", "{facts} so it is True", "{fact} Therefore: **False**", "The true answer: {facts}", "fal\nse",
    "true false true", "<b>not  true</b> false? not\ttrue", "İt is truE", "An answer", "None", "other/refused",
)  # fmt: skip


def build_flenqa(root: Path) -> Path:
    """Write the data set's only file."""
    write(root / SOURCE.paths[0], rows())
    return root


def rows() -> list[dict[str, Any]]:
    """Return the rows of the data set."""
    return [
        row
        for index, dataset in enumerate(DATASETS.values())
        for number in range(QUESTIONS)
        for row in _question(
            random.Random(f"{dataset} {number}"), dataset, index * 4000 + number
        )
    ]


def _question(
    rng: random.Random, dataset: str, number: int
) -> Iterator[dict[str, Any]]:
    facts = [f"{words(rng, 3)} the {words(rng, 2)}." for _ in range(2)]
    question = f"{words(rng, 4)}?"
    label = rng.choice(("True", "False"))
    ruled = dataset == "Simplified RuleTaker"
    rule: Any = [f"If 'X' is {words(rng, 1)}."]
    for padding, dispersion, size in product(
        ("books", "same"), ("first", "middle", "last", "random"), LENGTHS
    ):
        # The hub has a list of rules as text, the official archive as a list.
        yield {
            "global_sample_id": number, "sample_id": number % 4000, "label": label, "dataset": dataset,
            "facts": None if ruled else facts, "statement": facts if ruled else None,
            "rule": (str(rule) if padding == "books" else rule) if ruled else None,
            "assertion/question": question, "padding_type": padding, "dispersion": dispersion, "ctx_size": size,
            "mixin": "\n".join([*facts, *([words(rng, size // 100)] if size > LENGTHS[0] else [])]),
        }  # fmt: skip


def answers(row: dict[str, Any]) -> list[str]:
    """Return four odd answers to a row, which repeat some of its facts."""
    rng = random.Random(
        str(
            (
                row["global_sample_id"],
                row["padding_type"],
                row["dispersion"],
                row["ctx_size"],
            )
        )
    )
    facts = row["facts"] or row["statement"]
    return [
        answer.replace("{facts}", " ".join(facts)).replace("{fact}", facts[0])
        for answer in rng.sample(ANSWERS, 4)
    ]
