"""Prompts, items and scores of the official code (golden_makers/longproc.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helm_longctx.benchmarks.longproc import BENCHMARK, tasks
from helm_longctx.benchmarks.longproc.data import FOLDER, TASKS, problems
from helm_longctx.data.root import DataRoot
from tests.benchmarks.longproc.fabricate import build_longproc, cases
from tests.golden_makers.longproc import item_text
from tests.support.golden_cases import Comparison, GoldenCases, ScoredOutput
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


def list_levels() -> Iterator[tuple[str, str]]:
    """Yield each task with each of its levels."""
    for name, files in TASKS.items():
        for level in files.levels:
            yield name, level


def digest_problems(name: str, level: str) -> Callable[[DataRoot], list[str]]:
    """Return a function that returns digests of the prompts and of the items."""

    def compute(root: DataRoot) -> list[str]:
        own = list(problems(name, level, root / FOLDER))
        assert [problem.number for problem in own] == list(range(len(own)))
        return [
            digest(problem.prompt for problem in own),
            digest(item_text(problem.item) for problem in own),
        ]

    return compute


def compare_problems() -> Iterator[Comparison]:
    """Yield the problems of all tasks at all their levels."""
    for name, level in list_levels():
        case = f"{name}_{level}"
        official = [GOLDEN["prompts"][case], GOLDEN["items"][case]]
        yield Comparison(case, digest_problems(name, level), official)


def read_items(root: DataRoot) -> dict[tuple[str, str, int], Any]:
    """Return the item of each problem."""
    items = {}
    for name, level in list_levels():
        for problem in problems(name, level, root / FOLDER):
            items[name, level, problem.number] = problem.item
    return items


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs. Programs count as right and are not run, as when the golden scores were made.

    Where the official code fails, as it does for some equations, the score is 0.
    """
    items = read_items(root)
    scored = zip(cases(root / FOLDER), GOLDEN["scores"], strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "passes", lambda code, tests: True)
        for (name, level, number, output), said in scored:
            official = json.loads(said)
            if isinstance(official, str):
                assert name == "countdown", official
                official = {"accuracy": 0.0}
            record = {"prediction": output, "item": items[name, level, number]}
            yield ScoredOutput(name, record, official)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longproc,
    comparisons=tuple(compare_problems()),
    list_outputs=list_outputs,
)
