"""Prompts and scores of HELMET's new tasks by the official code (golden_makers/helmet2.py)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

import pytest

from helm_longctx.benchmarks.helmet.helmet2 import BENCHMARK, tasks
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.helmet2.fabricate import (
    CLASSES,
    build_helmet2,
    length_of,
    records,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def digest_prompts(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> list[str]:
    """Return a digest of each prompt: both of its forms, and the references."""
    digests = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_CLASSES", CLASSES)
        for example in examples:
            prompt = task.prompt(example)
            parts = [prompt.text("chat"), prompt.text("completion"), example.references]
            text = json.dumps(parts)
            digests.append(hashlib.sha256(text.encode()).hexdigest()[:16])
    return digests


def compare_prompts() -> Iterator[Comparison]:
    """Yield the prompts of all tasks, also those whose text is cut."""
    for case, official in GOLDEN["prompts"].items():
        name, _, label = case.rpartition("_")
        if name == "longbenchv2":
            task = BENCHMARK.task("multiple_choice")
            length = int(label)
        else:
            task = BENCHMARK.task(name.removeprefix("graphwalk_"))
            length = length_of(task.name)
        settings = Settings(length=length, seed=5, num_samples=4)
        yield compare_examples(case, official, task, settings, digest_prompts)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with all official metrics."""
    for record, official in zip(records(), GOLDEN["scores"], strict=True):
        yield ScoredOutput(record["task"], record, official)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_helmet2,
    comparisons=tuple(compare_prompts()),
    list_outputs=list_outputs,
)
