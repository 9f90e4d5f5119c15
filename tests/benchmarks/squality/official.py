"""Inputs and scores of the official code (golden_makers/squality.py)."""

from __future__ import annotations

from collections.abc import Iterator

from helm_longctx.benchmarks.squality import BENCHMARK
from helm_longctx.data.root import DataRoot
from tests.benchmarks.squality.fabricate import build_squality, records
from tests.support.golden_cases import GoldenCases, ScoredOutput, compare_examples
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
(TASK,) = BENCHMARK.tasks
METRICS = ("rouge1", "rouge2", "rougeL")


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield summaries with their official values of ROUGE."""
    for (references, output), official in zip(records(), GOLDEN["scores"], strict=True):
        record = {"prediction": output, "references": references}
        metrics = dict(zip(METRICS, official, strict=True))
        yield ScoredOutput(TASK.name, record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_squality,
    comparisons=(compare_examples("inputs", GOLDEN["inputs"], TASK),),
    list_outputs=list_outputs,
)
