"""Prompts, scores, the judges' prompts and labels of the official codes (golden_makers/locomo.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from helm_longctx.benchmarks.locomo import BENCHMARK
from helm_longctx.benchmarks.locomo.tasks import JUDGES, read_mem0
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Settings
from tests.benchmarks.locomo.fabricate import ODD_REPLIES, build_locomo, make_answers
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("qa")
OPTIONS = ("num_tokens_request", "temperature")


def list_options(root: DataRoot) -> dict[str, object]:
    """Return the budget and the temperature of each request."""
    return {
        "num_tokens_request": TASK.max_tokens,
        "temperature": TASK.variant(Settings(None)).temperature,
    }


def digest_judge_messages(name: str) -> Callable[[DataRoot], str]:
    """Return a function that returns a digest of a judge's messages."""

    def compute(root: DataRoot) -> str:
        judge = JUDGES[name]
        texts = []
        for record in make_answers(len(ODD_REPLIES)):
            if judge.system:
                texts.append(judge.system)
            texts.append(judge.write({**record, "question": "What {x}?"}))
        return digest(texts)

    return compute


def read_labels(root: DataRoot) -> list[float | None]:
    """Return the labels of odd replies by Mem0's code."""
    return [read_mem0(reply) for reply in ODD_REPLIES]


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield 3,000 answers to questions of all kinds."""
    official = GOLDEN["scores"]
    for record, score in zip(make_answers(3000), official, strict=True):
        yield ScoredOutput(TASK.name, record, {"f1": score})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_locomo,
    comparisons=(
        compare_examples("prompts", GOLDEN["prompts"], TASK),
        Comparison(
            "options", list_options, {name: GOLDEN["options"][name] for name in OPTIONS}
        ),
        Comparison("mem0", digest_judge_messages("mem0"), GOLDEN["mem0"]),
        Comparison("zep", digest_judge_messages("zep"), GOLDEN["zep"]),
        Comparison("labels", read_labels, GOLDEN["labels"]),
    ),
    list_outputs=list_outputs,
)
