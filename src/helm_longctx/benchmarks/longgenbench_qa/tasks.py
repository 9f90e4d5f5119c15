"""LongGenBench's two tasks that the official repository has; the paper's third one, CommonsenseQA, is not in it.

Source: Dominic789654/LongGenBench at 9845864.
"""

from functools import partial

from helm_longctx.benchmarks.longgenbench_qa import data, scoring
from helm_longctx.tasks import NO_TEMPLATE, Category, Task, read_benchmark

BUDGET = 4096
"""The output budget in tokens."""


_task = partial(
    Task,
    template=NO_TEMPLATE,
    headline=("accuracy",),
    metrics=("accuracy", "accuracy_of_all", "answered"),
    max_tokens=BUDGET,
    chat=True,
    cut="nothing",
)

_GSM8K = _task(
    "gsm8k",
    "GSM8K",
    load=data.load_gsm8k,
    score=scoring.score_gsm8k,
    num_samples=20,
    sources=lambda length: (data.PROMPTS, data.GSM8K_SCRIPT, data.QUESTIONS),
)
_MMLU = _task(
    "mmlu",
    "MMLU",
    load=data.load_mmlu,
    score=scoring.score_mmlu,
    num_samples=len(data.SUBJECTS),
    sources=lambda length: (data.PROMPTS, data.MMLU_SCRIPT),
)

LONGGENBENCH_QA = read_benchmark(__package__, (Category("", "", (_GSM8K, _MMLU)),))
