"""Prompts and accuracies of the official code (golden_makers/longhealth.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean

import pytest

from helm_longctx.benchmarks.longhealth import BENCHMARK, tasks
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.counting import make_codec
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.longhealth.fabricate import (
    LIMITS,
    SEEDS,
    answer,
    build_longhealth,
    fingerprint,
    tokenizer,
)
from tests.support.golden_cases import Comparison, GoldenCases, join_comparisons
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def ask(case: str, seed: int, task: Task) -> Callable[[DataRoot], list[object]]:
    """Return a function that returns the short form of a task's requests, and the accuracy of odd answers in percent."""

    def compute(root: DataRoot) -> list[object]:
        folder = DataRoot(root / str(seed), mirror=True)
        build_longhealth(folder, seed)
        settings = Settings(None, codec=make_codec(tokenizer(case.split()[0])))
        system_message = task.variant(settings).system
        messages = []
        scores = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tasks, "_MOST_TOKENS", LIMITS[case])
            for example in load_examples(task, settings, folder):
                system, user = task.prompt(example, system_message).messages
                messages.append((system["content"], user["content"]))
                record = {
                    "prediction": answer(user["content"]),
                    "references": example.references,
                }
                scores.append(task.scores(record)["accuracy"])
        return [*fingerprint(messages), round(fmean(scores) * 100, 9)]

    return compute


def compare_tasks() -> Iterator[Comparison]:
    """Yield the requests and accuracies of all tasks with several tokenizers, limits and seeds."""
    for case in LIMITS:
        for seed in SEEDS:
            for task in BENCHMARK.tasks:
                *requests, accuracy = GOLDEN[f"{case} {seed}"][task.name]
                official = [*requests, round(accuracy, 9)]
                name = f"{case} {seed} {task.name}"
                yield Comparison(name, ask(case, seed, task), official)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longhealth,
    comparisons=join_comparisons(compare_tasks(), words=2),
)
