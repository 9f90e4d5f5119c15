"""LongGenBench's two tasks that the official repository has; the paper's third one, CommonsenseQA, is not in it.

Source: Dominic789654/LongGenBench at 9845864.
"""

from __future__ import annotations

from collections.abc import Callable

from helm_longctx.benchmarks.longgenbench_qa import data, scoring
from helm_longctx.data.download import Source
from helm_longctx.tasks.benchmark import Benchmark, Category, Metric, Terms
from helm_longctx.tasks.task import Loader, Record, Scores, Task
from helm_longctx.tasks.template import NO_TEMPLATE

BUDGET = 4096
"""The output budget in tokens."""


def _task(
    name: str, title: str, load: Loader, score: Callable[[Record], Scores], prompts: int, sources: tuple[Source, ...]
) -> Task:
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        load=load,
        score=score,
        headline=("accuracy",),
        metrics=("accuracy", "accuracy_of_all", "answered"),
        max_tokens=BUDGET,
        num_samples=prompts,
        sources=lambda length: sources,
        chat=True,
        cut="nothing",
    )


LONGGENBENCH_QA = Benchmark(
    name="longgenbench_qa",
    title="LongGenBench (questions)",
    description="LongGenBench: Long-context Generation Benchmark (arXiv 2410.04199)",
    revision="Dominic789654/LongGenBench@9845864",
    comparability=1,
    url="https://github.com/Dominic789654/LongGenBench/tree/9845864",
    data={
        "https://github.com/Dominic789654/LongGenBench": Terms("none is stated; MMLU's files are MIT", "3 MB"),
        "https://github.com/openai/grade-school-math": Terms("MIT", "1 MB"),
    },
    categories=(
        Category(
            "",
            "",
            (
                _task(
                    "gsm8k", "GSM8K", data.load_gsm8k, scoring.score_gsm8k, 20,
                    (data.PROMPTS, data.GSM8K_SCRIPT, data.QUESTIONS),
                ),
                _task(
                    "mmlu", "MMLU", data.load_mmlu, scoring.score_mmlu, len(data.SUBJECTS),
                    (data.PROMPTS, data.MMLU_SCRIPT),
                ),
            ),
        ),
    ),
    metrics=(
        Metric("accuracy", "Accuracy", "Share of right answers: GSM8K of the answered questions, MMLU of all."),
        Metric(
            "accuracy_of_all",
            "Accuracy of all",
            "Share of all questions with the right number or letter, without the official code's defects.",
        ),
        Metric("answered", "Answered", "Share of the questions that have an answer in the text."),
    ),
    axis=None,
)  # fmt: skip
