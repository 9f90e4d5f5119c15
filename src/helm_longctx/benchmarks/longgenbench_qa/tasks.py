"""LongGenBench's two tasks that the official repository has; the paper's third one, CommonsenseQA, is not in it.

Source: Dominic789654/LongGenBench at 9845864.
"""

from collections.abc import Callable

from helm_longctx.benchmarks.longgenbench_qa import data, scoring
from helm_longctx.data.download import Source
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
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


LONGGENBENCH_QA = read_benchmark(
    __package__,
    (
        Category(
            "",
            "",
            (
                _task(
                    "gsm8k",
                    "GSM8K",
                    data.load_gsm8k,
                    scoring.score_gsm8k,
                    20,
                    (data.PROMPTS, data.GSM8K_SCRIPT, data.QUESTIONS),
                ),
                _task(
                    "mmlu",
                    "MMLU",
                    data.load_mmlu,
                    scoring.score_mmlu,
                    len(data.SUBJECTS),
                    (data.PROMPTS, data.MMLU_SCRIPT),
                ),
            ),
        ),
    ),
)
