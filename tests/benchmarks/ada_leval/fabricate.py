"""Fabricate Ada-LEval's files and odd outputs, which are the same on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.ada_leval import BENCHMARK
from helm_longctx.benchmarks.ada_leval.tasks import file_of
from tests.support.fabricate_words import words

SEEDS = (1, 2, 3)
ROWS = {1024: 1003, 2048: 12, 8192: 12, 32768: 203}
"""The number of rows of a file by length; two files have more rows than are read."""
COUNTS = (1, 4, 12, 30)

ODD_CHOICES = (
    *(
        "A4",
        "Answer: A12",
        "A1 is better than A3",
        "A40",
        "a4",
        "A 4",
        "",
        "none",
        "4",
        "12 and 3",
        "A",
        "A04",
        "A-4",
    ),
    *(
        "The answer is A3, not A2. 12",
        "A4A12",
        "Ａ４",
        "A٤",
        "１２",
        "0",
        "A0",
        "1A2",
        "Answer: A31",
        "3.14",
        "\nA2\n",
    ),
)
ODD_ORDERS = (
    *(
        "[4, 1, 3, 2]",
        "Answer: [4, 1, 3, 2]",
        "Answer:[4,1,3,2] Answer: [1, 2, 3, 4]",
        "Answer: \n [2, 1, 3, 4]\n",
    ),
    *(
        "[]",
        "Answer: []",
        "[1]",
        "[1, 2]",
        "[1, 2, 3, 4, 5]",
        "[1.0, 2, 3, 4]",
        "[true, 2, 3, 4]",
        "{}",
        '""',
        '"1234"',
    ),
    *(
        '{"1": 2}',
        "[null]",
        "NaN",
        "[NaN, 2]",
        "null",
        "1",
        "1234",
        "true",
        "-1",
        "[[1, 2], [3, 4]]",
        "[" * 100_000,
    ),
    *(
        "4 -> 1 -> 3 -> 2",
        "Part 2, Part 1, Part 4, Part 3",
        "2134",
        "1 2 3 4 1",
        "1, 2, 3",
        "4132 4132",
        "answer: 1 2 3 4",
    ),
    *(
        "",
        "Answer:",
        "Answer: x",
        "1 4 Answer: 2 3 1 4",
        "[1, 2, 3, 4",
        "```json\n[1, 2, 3, 4]\n```",
        "１２３４",
        "3 1\n4 2",
    ),
    *(
        "Infinity",
        "[1e0, 2, 3, 4]",
        "\ufeff[1, 2, 3, 4]",
        "[4, 1, 3, 2] ",
        '["1", "2", "3", "4"]',
        "9" * 5000,
        "Answer: 3142.",
    ),
)
RECORD = {"prediction": "Answer: A2 [2, 1, 3]", "num_choice": 12, "order": [2, 1, 3, 4]}


def build_ada_leval(root: Path, seed: int = SEEDS[0]) -> Path:
    """Write the files of both tasks at a few lengths."""
    for task in BENCHMARK.tasks:
        for length in ROWS:
            path = root / file_of(task.name, length).path
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [
                *FABRICATED[task.name](random.Random(f"{seed} {length}"), ROWS[length])
            ]
            path.write_text(
                json.dumps(rows, indent=4, ensure_ascii=False), encoding="utf-8"
            )
    return root


def _questions(rng: random.Random, rows: int) -> Iterator[dict[str, Any]]:
    for number in range(rows):
        # Some rows have the same question and the same place of the accepted answer.
        count = rng.randint(2, 14)
        topic = words(rng, 3)
        position = 1 if number % 50 < 2 else rng.randint(1, count)
        texts = [words(rng, rng.randint(0, 8)) for _ in range(count)]
        texts[position - 1] += f" {topic}"
        yield {
            "question_id": str(number // 2) if number % 50 < 2 else number,
            "question": f"{topic}\n\nPossible answers {{are}} {words(rng, 4)}",
            "answer": f"A{position}",
            "all_answers": texts,
            "tags": ["c++", words(rng, 1)],
        }


def _sections(rng: random.Random, rows: int) -> Iterator[dict[str, Any]]:
    for number in range(rows):
        seams = [f"seam{rng.getrandbits(40)}" for _ in range(5)]
        texts = [
            f"{left} {words(rng, 9)} {right}"
            for left, right in zip(["", *seams], [*seams, ""], strict=True)
        ]
        order = rng.sample(range(1, 5), 4)
        shown = dict(zip(order, texts[1:5], strict=True))
        parts = "".join(
            f"Part {position}: {shown[position]}\n\n\n" for position in range(1, 5)
        )
        yield {
            "book_id": number // 7,
            "para_offset": [number % 7, rng.randint(0, 2)],
            "answer": json.dumps(order) if number % 3 else order,
            "prompt": f"\nSort {{these}}.\n\nBefore: {texts[0]}\n\n\n{parts}After: {texts[5]}\n\n\n",
        }


FABRICATED: dict[str, Callable[[random.Random, int], Iterable[dict[str, Any]]]] = {
    "stackselect": _questions,
    "textsort": _sections,
}


def choice_records() -> list[dict[str, Any]]:
    """Return outputs for BestAnswer, each with the number of answers and the accepted answer."""
    rng = random.Random(7)
    made = [
        "".join(
            rng.choices(
                ["A", "1", "2", "3", "0", " ", "B", "Answer: "], k=rng.randint(0, 9)
            )
        )
        for _ in range(100)
    ]
    return [
        {
            "prediction": output,
            "num_choice": count,
            "answer": f"A{rng.randint(1, count)}",
        }
        for output in (*ODD_CHOICES, *made)
        for count in COUNTS
    ]


def order_records() -> list[dict[str, Any]]:
    """Return outputs for TSort, some of which name an order, each with the right order."""
    rng = random.Random(8)
    made = [
        "".join(
            rng.choices(
                [*"1234", " ", ", ", "[", "]", "Answer: "], k=rng.randint(0, 12)
            )
        )
        for _ in range(200)
    ]
    orders = [list(order) for order in permutations(range(1, 5))]
    named = [
        {"prediction": form.format(*order), "answer": order}
        for order in orders
        for form in ("Answer: [{}, {}, {}, {}]", "{}{}, {} then {}")
    ]
    return named + [
        {"prediction": output, "answer": order}
        for output in (*ODD_ORDERS, *made)
        for order in ([1, 2, 3, 4], [4, 1, 3, 2], rng.choice(orders))
    ]


def fingerprint(rows: Iterable[tuple[str, str, Any]]) -> list[Any]:
    """Return the number of rows, and a digest of their official names, prompts and answers."""
    listed = [list(row) for row in rows]
    return [len(listed), hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]]
