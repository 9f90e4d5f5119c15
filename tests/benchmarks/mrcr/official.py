"""Conversations, bins and scores of the official code (golden_makers/mrcr.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import pytest

from helm_longctx.benchmarks.mrcr import BENCHMARK, HELMET2, tasks
from helm_longctx.benchmarks.mrcr.tasks import load_shuffled
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.mrcr.fabricate import BINS, build_split, encoding, records
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def replace_counter(patch: pytest.MonkeyPatch) -> None:
    """Count the tokens of conversations with the fabricated encoding."""
    encode = encoding().encode
    patch.setattr(tasks, "o200k_counter", lambda: lambda text: len(encode(text)))


def list_conversations(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> list[list[object]]:
    """Return the number of each row and its messages with their roles."""
    rows: list[list[object]] = []
    with pytest.MonkeyPatch.context() as patch:
        replace_counter(patch)
        for example in examples:
            messages = [[turn["role"], turn["content"]] for turn in example.messages]
            rows.append([int(example.id.removeprefix("mrcr-")), messages])
    return rows


def compare_conversations() -> Iterator[Comparison]:
    """Yield the rows of all bins for each number of needles."""
    for needles in tasks.NEEDLES:
        for label, length in BINS.items():
            case = f"{needles} {label}"
            yield compare_examples(
                case,
                json.loads(GOLDEN["rows"][case]),
                BENCHMARK.task(f"{needles}needle"),
                Settings(length=length),
                list_conversations,
            )


def draw_sample(needles: int, length: int) -> Callable[[DataRoot], list[int]]:
    """Return a function that draws HELMET's sample, and returns the numbers of its rows."""

    def draw(root: DataRoot) -> list[int]:
        settings = Settings(length=length, seed=7, num_samples=4)
        with pytest.MonkeyPatch.context() as patch:
            replace_counter(patch)
            sample = [*load_shuffled(HELMET2.tasks[0], settings, root, needles)]
        return [int(example.id.removeprefix("mrcr-")) for example in sample]

    return draw


def compare_samples() -> Iterator[Comparison]:
    """Yield HELMET's samples."""
    for case, official in GOLDEN["shuffled"].items():
        needles, label = case.split()
        draw = draw_sample(int(needles), BINS[label])
        yield Comparison(f"shuffled {case}", draw, official)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield outputs of each kind, with the ratio of the official code."""
    for record, official in zip(records(), GOLDEN["scores"], strict=True):
        yield ScoredOutput("2needle", record, {"score": official})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_split,
    comparisons=(*compare_conversations(), *compare_samples()),
    list_outputs=list_outputs,
)
