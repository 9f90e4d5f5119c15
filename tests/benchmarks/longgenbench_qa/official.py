"""Prompts and right answers of the official code (golden_makers/longgenbench_qa.py)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

from helm_longctx.benchmarks.longgenbench_qa import BENCHMARK, tasks
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.longgenbench_qa.fabricate import answer, build_longgenbench_qa
from tests.support.official import (
    Comparison,
    GoldenCases,
    compare_examples,
    digest,
    join_comparisons,
    read_golden,
)

GOLDEN = read_golden(__file__)
GSM8K, MMLU = BENCHMARK.tasks
COUNTS = ((35, 40), (0, 35), (35, 35))
"""The fewest and most answers of a fabricated text, by the remainder of its seed."""


def digest_users(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of the user messages, which stand after the system message."""
    return digest(example.messages[1]["content"] for example in examples)


def count_right_answers(seed: int) -> Callable[[DataRoot], list[int]]:
    """Return a function that returns how many answers of GSM8K are asked and are right in odd texts."""

    def compute(root: DataRoot) -> list[int]:
        rng = random.Random(seed)
        asked = right = 0
        for example in load_examples(GSM8K, Settings(None), root):
            answers = tasks.find_answers(answer(rng, *COUNTS[seed % 3]))
            own_asked, own_right = tasks._read_file(
                answers, example.references, tasks._same_number
            )
            asked += own_asked
            right += own_right
        return [asked, right]

    return compute


def compute_accuracy(seed: int) -> Callable[[DataRoot], float]:
    """Return a function that returns the sum over subjects of MMLU of the right answers of 20 in odd texts."""

    def compute(root: DataRoot) -> float:
        rng = random.Random(seed)
        total = 0.0
        for example in load_examples(MMLU, Settings(None), root):
            record = {
                "prediction": answer(rng, 20, 24),
                "references": example.references,
            }
            scores = MMLU.scores(record)
            assert scores["answered"] == 1
            total += scores["accuracy"]
        return total * 20

    return compute


def compare_tasks() -> Iterator[Comparison]:
    """Yield the prompts of both tasks, and the right answers of odd texts."""
    for task in BENCHMARK.tasks:
        (prompts,) = {row[0] for row in GOLDEN[task.name]}
        yield compare_examples(
            f"prompts {task.name}", prompts, task, describe=digest_users
        )
    for seed, (_, *counts) in enumerate(GOLDEN["gsm8k"]):
        yield Comparison(f"gsm8k {seed}", count_right_answers(seed), counts)
    for seed, (_, right) in enumerate(GOLDEN["mmlu"]):
        yield Comparison(f"mmlu {seed}", compute_accuracy(seed), right, 1e-6)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longgenbench_qa,
    comparisons=join_comparisons(compare_tasks(), words=1),
)
