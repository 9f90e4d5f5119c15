"""Prompts and scores of the official code (golden_makers/mrcr_v2.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from helm_longctx.benchmarks.mrcr_v2 import BENCHMARK
from helm_longctx.benchmarks.mrcr_v2.tasks import CUMULATIVE, LENGTHS
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.mrcr_v2.fabricate import (
    SEEDS,
    build_mrcr_v2,
    fingerprint,
    records,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    join_comparisons,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def digest_requests(task: Task, seed: int) -> Callable[[DataRoot], list[str]]:
    """Return a function that loads the files of a seed, and returns the short form of each request."""

    def load(root: DataRoot) -> list[str]:
        folder = DataRoot(build_mrcr_v2(root / str(seed), seed), mirror=True)
        is_cumulative = task.argument.endswith("_upto")
        settings = Settings(CUMULATIVE if is_cumulative else LENGTHS["8k"])
        temperature = task.variant(settings).temperature
        return [
            fingerprint(task.prompt(example).user_turn, temperature)
            for example in load_examples(task, settings, folder)
        ]

    return load


def compare_requests() -> Iterator[Comparison]:
    """Yield the requests of all tasks, also of those with cumulative files."""
    for task in BENCHMARK.tasks:
        needles, _, _ = task.argument.partition("_")
        for seed in SEEDS:
            yield Comparison(
                f"{task.argument} {seed}",
                digest_requests(task, seed),
                GOLDEN["asked"][f"{needles} {seed}"],
            )


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield outputs of each kind, with the score of the official code."""
    for record, official in zip(records(), GOLDEN["scores"], strict=True):
        yield ScoredOutput(BENCHMARK.tasks[0].name, record, {"score": official})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_mrcr_v2,
    comparisons=join_comparisons(compare_requests(), words=1),
    list_outputs=list_outputs,
)
