"""Prompts and scores of the official code (golden_makers/flenqa.py)."""

from __future__ import annotations

from collections.abc import Iterator

from helm_longctx.benchmarks.flenqa import BENCHMARK
from helm_longctx.benchmarks.flenqa.tasks import DATASETS, LENGTHS
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.flenqa.fabricate import answers, build_flenqa, rows
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    join_comparisons,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
METRICS = ("accuracy", "cot_coverage", "early_response")
"""The metrics of a task with reasoning; one without reasoning has only the first."""


def is_reasoned(task: Task) -> bool:
    """Return whether a task asks for reasoning."""
    return task.name.endswith("_cot")


def find_golden(task: Task, length: int) -> dict:
    """Return what the golden file has of a task at a length."""
    return GOLDEN[f"{DATASETS[task.argument]} {length} {is_reasoned(task)}"]


def compare_prompts() -> Iterator[Comparison]:
    """Yield the prompts of all tasks at all lengths."""
    for task in BENCHMARK.tasks:
        for length in LENGTHS:
            yield compare_examples(
                f"{task.name} {length}",
                find_golden(task, length)["prompts"],
                task,
                Settings(length),
            )


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd answers to all rows, which are in the order of the examples."""
    every_row = rows()
    for task in BENCHMARK.tasks:
        metrics = METRICS if is_reasoned(task) else METRICS[:1]
        for length in LENGTHS:
            scores = iter(find_golden(task, length)["scores"])
            dataset = DATASETS[task.argument]
            own_rows = [
                row
                for row in every_row
                if (row["dataset"], row["ctx_size"]) == (dataset, length)
            ]
            examples = load_examples(task, Settings(length), root)
            for example, row in zip(examples, own_rows, strict=True):
                for answer in answers(row):
                    record = {
                        **example.record,
                        "prediction": answer,
                        "references": example.references,
                    }
                    official = dict(zip(metrics, next(scores), strict=False))
                    yield ScoredOutput(task.name, record, official)
            assert next(scores, None) is None


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_flenqa,
    comparisons=join_comparisons(compare_prompts(), words=1),
    list_outputs=list_outputs,
)
