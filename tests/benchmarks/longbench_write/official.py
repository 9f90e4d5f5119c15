"""Prompts, words, length scores and the judge's prompts of the official code (golden_makers/longbench_write.py)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from helm_longctx.benchmarks.longbench_write import BENCHMARK
from helm_longctx.benchmarks.longbench_write.tasks import (
    GRADES,
    judge_prompt,
    read_grades,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longbench_write.fabricate import (
    build_longbench_write,
    replies,
    responses,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("requests")
NAMES = {**GRADES, "judge_score": "total"}
"""The official names of the grades, by our metrics."""


def digest_judge_prompts(root: DataRoot) -> str:
    """Return a digest of the judge's prompts, also for requests and texts with placeholders."""
    examples = load_examples(TASK, Settings(None), root)
    asked = []
    for example, text in zip(examples, responses(), strict=True):
        question = example.fields["input"]
        record = {**example.record, "question": question, "prediction": text}
        asked.append(judge_prompt(record))
    return digest(asked)


def compute_means(root: DataRoot) -> dict[str, float]:
    """Return the mean grades of the texts with a readable last reply."""
    grades = [read_grades(row[-1]) for row in replies()]
    readable = [grade for grade in grades if grade]
    assert len(readable) == len(grades) - 1
    return {
        name: 100 * fmean(grade[metric] for grade in readable)
        for metric, name in NAMES.items()
    }


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield texts with their numbers of words and length scores."""
    examples = load_examples(TASK, Settings(None), root)
    official = zip(GOLDEN["words"], GOLDEN["length_scores"], strict=True)
    for example, text, (words, length_score) in zip(
        examples, responses(), official, strict=True
    ):
        record = {**example.record, "prediction": text, "references": []}
        yield ScoredOutput(TASK.name, record, {"output_words": words})
        yield ScoredOutput(TASK.name, record, {"length_score": length_score}, scale=100)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longbench_write,
    comparisons=(
        compare_examples("prompts", GOLDEN["prompts"], TASK),
        Comparison("judge", digest_judge_prompts, GOLDEN["judge_prompts"]),
        Comparison(
            "means",
            compute_means,
            {name: GOLDEN["total"][name] for name in NAMES.values()},
            relative=1e-14,
        ),
    ),
    list_outputs=list_outputs,
)
