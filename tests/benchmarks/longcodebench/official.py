"""Prompts and scores of the official code and of NeMo Gym (golden_makers/longcodebench.py)."""

from __future__ import annotations

from collections.abc import Iterator

from helm_longctx.benchmarks.longcodebench import BENCHMARK
from helm_longctx.benchmarks.longcodebench.tasks import SAMPLES
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longcodebench.fabricate import (
    QUESTIONS,
    REPOSITORIES,
    answers,
    build_longcodebench,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def make_settings(length: int) -> Settings:
    """Return settings with all rows of a length."""
    return Settings(length, num_samples=REPOSITORIES * QUESTIONS)


def compare_prompts() -> Iterator[Comparison]:
    """Yield the prompts of all tasks and lengths."""
    for task in BENCHMARK.tasks:
        for length in SAMPLES:
            case = f"{task.name} {length}"
            prompts = GOLDEN[case]["prompts"]
            yield compare_examples(case, prompts, task, make_settings(length))


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd answers to all questions, each of which is right or wrong."""
    for task in BENCHMARK.tasks:
        for length in SAMPLES:
            examples = load_examples(task, make_settings(length), root)
            scores = GOLDEN[f"{task.name} {length}"]["scores"]
            for example, digits in zip(examples, scores, strict=True):
                own_answers = answers(example.references[0], task.name == "qa_gym")
                for answer, digit in zip(own_answers, digits, strict=True):
                    record = {"prediction": answer, "references": example.references}
                    yield ScoredOutput(task.name, record, {"accuracy": int(digit)})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longcodebench,
    comparisons=tuple(compare_prompts()),
    list_outputs=list_outputs,
)
