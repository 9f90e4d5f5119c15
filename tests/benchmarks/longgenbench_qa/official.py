"""Prompts and right answers of the official code (golden_makers/longgenbench_qa.py)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.longgenbench_qa import BENCHMARK, tasks
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.longgenbench_qa.fabricate import answer, build_longgenbench_qa
from tests.support.golden_cases import Comparison, GoldenCases, compare_examples
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
GSM8K, MMLU = BENCHMARK.tasks
COUNTS = ((35, 40), (0, 35), (35, 35))
"""The fewest and most answers of a fabricated text, by the remainder of its seed."""


def digest_users(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of the user messages, which stand after the system message."""
    return digest(example.messages[1]["content"] for example in examples)


def count_right_answers(root: DataRoot) -> list[list[int]]:
    """Return how many answers of GSM8K are asked and are right in odd texts, for each seed."""
    examples = list(load_examples(GSM8K, Settings(None), root))
    counts = []
    for seed in range(len(GOLDEN["gsm8k"])):
        rng = random.Random(seed)
        asked = right = 0
        for example in examples:
            answers = tasks.find_answers(answer(rng, *COUNTS[seed % 3]))
            own_asked, own_right = tasks._read_file(
                answers, example.references, tasks._same_number
            )
            asked += own_asked
            right += own_right
        counts.append([asked, right])
    return counts


def compute_accuracies(root: DataRoot) -> list[float]:
    """Return the sums over subjects of MMLU of the right answers of 20 in odd texts, for each seed."""
    examples = list(load_examples(MMLU, Settings(None), root))
    sums = []
    for seed in range(len(GOLDEN["mmlu"])):
        rng = random.Random(seed)
        total = 0.0
        for example in examples:
            record = {
                "prediction": answer(rng, 20, 24),
                "references": example.references,
            }
            scores = MMLU.scores(record)
            assert scores["answered"] == 1
            total += scores["accuracy"]
        sums.append(total * 20)
    return sums


def compare_prompts() -> Iterator[Comparison]:
    """Yield the prompts of both tasks, which are the same for each seed."""
    for task in BENCHMARK.tasks:
        (prompts,) = {row[0] for row in GOLDEN[task.name]}
        yield compare_examples(
            f"prompts {task.name}", prompts, task, describe=digest_users
        )


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longgenbench_qa,
    comparisons=(
        *compare_prompts(),
        Comparison("gsm8k", count_right_answers, [row[1:] for row in GOLDEN["gsm8k"]]),
        Comparison(
            "mmlu",
            compute_accuracies,
            [row[1] for row in GOLDEN["mmlu"]],
            relative=1e-6,
        ),
    ),
)
