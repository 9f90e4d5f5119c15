"""Fabricate GSM-Infinite's rows, odd answers and replies of its extractor, which are the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.gsm_infinite import BENCHMARK
from helm_longctx.benchmarks.gsm_infinite.tasks import SHARES, read_verdict
from helm_longctx.tasks import MetricValues
from tests.support.fabricate_words import words, write

SEEDS = (42, 1, 7)
CASES = {
    "0": (0, 50, 8),
    "8k": (8192, 30, 4),
    "16k": (16384, 20, 4),
    "32k": (32768, 10, 4),
    "5000": (5000, 10, 4),
}
"""The length, the largest number of operations, and the number of problems of each, by official length."""
ROWS = {"ops_2": 130, "ops_3": 700}
"""Number of rows of a split; the others have few."""
RECORD = {"prediction": "Answer: 12.", "value": 3}
_FORMS = (
    "Answer: {}.", "answer: {}", "Solution: {}. Answer: 3.", "\\boxed{{{}}}", "$\\boxed{{1}}$ \\boxed{{{}}}", "It is {}.",
    "**Answer:** {}.", "**Answer: {}**", "Final Answer: Answer: {}.", "x\nAnswer: {}\n", "\\text{{Answer: }} {} x", "{}",
    "Answer: {} animals.", "answer: 1,{}.", "Answer: {}.0", "This is 4. That is {}. It is", "Answer:{}", "ANSWER: {} .",
    "is {}", "is 3. is {}", "Answer: **{}**", "a\x08Answer: {}.", "Answer: x. Solution: {}.", "Answer: 0{}.", "Answer: -{}.",
)  # fmt: skip
REPLIES = (
    "V000001",
    "V000001, V000002",
    "V000002 V000001",
    "None",
    "",
    "V1",
    "xV000001",
    "V000001V000002",
    "v000001",
)


def build_gsm_infinite(root: Path) -> Path:
    """Write the splits of the medium and hard problems at all lengths."""
    for name in ("medium", "hard"):
        task = BENCHMARK.task(name)
        for length in task.sizes:
            for path in task.paths(length):
                write(root / path, rows(Path(path).stem))
    return root


def rows(split: str) -> list[dict[str, Any]]:
    """Return the rows of a split."""
    rng = random.Random(split)
    return [
        _row(rng, int(split.removeprefix("ops_")), number)
        for number in range(ROWS.get(split, 12))
    ]


def _row(rng: random.Random, operations: int, number: int) -> dict[str, Any]:
    template, mode = rng.choice([*SHARES, ("other", "normalforward")])
    turns = [
        {"role": "system", "content": "{x}"},
        {"role": "user", "content": f"Problem: {words(rng, 6)}"},
    ]
    return {
        "problem": "p", "question": "q", "solution": f"{words(rng, 3)} Answer: {rng.randint(0, 20)}.", "op": operations,
        "id": number, "template": template, "mode": mode, "length": "8k", "d": 2, "messages": turns,
    }  # fmt: skip


def numbers() -> list[tuple[str, int]]:
    """Return odd outputs, each with the right number."""
    rng = random.Random(2)
    outputs = []
    for _ in range(2400):
        number = rng.choice((0, 3, 7, 12, 144))
        shown = rng.choice((number, number, 5))
        outputs.append(
            (
                words(rng, 1)
                + " "
                + "".join(
                    form.format(shown) for form in rng.sample(_FORMS, rng.randint(1, 2))
                ),
                number,
            )
        )
    return outputs


def extractions() -> list[tuple[str, int, list[str], str]]:
    """Return outputs with the value asked for, the right variables, and the extractor's reply."""
    rng = random.Random(3)
    return [
        (
            f"{words(rng, 4)} {{value}}",
            rng.randint(-9, 20),
            rng.sample(["V000001", "V000002"], rng.randint(1, 2)),
            rng.choice(REPLIES),
        )
        for _ in range(400)
    ]


def read_reply(reply: Any) -> MetricValues:
    """Return the verdict about a reply."""
    return read_verdict(reply, {"references": ["V000001"]})
