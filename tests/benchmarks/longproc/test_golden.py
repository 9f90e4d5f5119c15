"""Prompts, items and scores equal the official code's, which was run on the same data (golden_makers/longproc.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longproc import tasks
from helm_longctx.benchmarks.longproc.data import TASKS, problems
from helm_longctx.benchmarks.longproc.tasks import EVALUATORS
from tests.benchmarks.longproc.fabricate import PROGRAMS, build_longproc, cases
from tests.golden_makers.longproc import item_text
from tests.support.official import digest
from tests.support.sandboxes import require_sandbox

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_longproc(tmp_path_factory.mktemp("longproc"))


def test_every_task_and_level_is_golden() -> None:
    """The golden file covers all tasks at all their levels."""
    assert set(GOLDEN["prompts"]) == {
        f"{name}_{level}" for name, files in TASKS.items() for level in files.levels
    }


@pytest.mark.parametrize("name", GOLDEN["prompts"])
def test_prompts_and_items(name: str, root: Path) -> None:
    """Every prompt, every field of an item and the order are the official ones."""
    task, level = name.rsplit("_", 1)
    found = list(problems(task, level, root))
    assert [problem.number for problem in found] == list(range(len(found)))
    assert digest(problem.prompt for problem in found) == GOLDEN["prompts"][name]
    assert digest(item_text(problem.item) for problem in found) == GOLDEN["items"][name]


Scored = list[tuple[str, str, dict[str, float], Any]]
"""The task, the output, our scores, and the official scores or the official code's error."""


@pytest.fixture(scope="module")
def scored(root: Path) -> Scored:
    """Score all cases; programs count as right and are not run, as when the golden scores were made."""
    items = {
        (task, level, problem.number): problem.item
        for task, files in TASKS.items()
        for level in files.levels
        for problem in problems(task, level, root)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "passes", lambda code, tests: True)
        return [
            (
                task,
                output,
                EVALUATORS[task].score(
                    {"prediction": output, "item": items[task, level, number]}
                ),
                json.loads(said),
            )
            for (task, level, number, output), said in zip(
                cases(root), GOLDEN["scores"], strict=True
            )
        ]


def test_scores(scored: Scored) -> None:
    """Every score of every output is the official one."""
    for task, output, scores, official in scored:
        if isinstance(official, dict):
            assert scores == official, (task, output[:80])
        else:
            assert task == "countdown", official
            assert scores["accuracy"] == 0.0
    assert sum(isinstance(official, str) for *_, official in scored) >= 10


def test_golden_scores_say_something(scored: Scored) -> None:
    """In every task some outputs are right, some are wrong, and some are in between."""
    for task in TASKS:
        values = [
            tuple(scores.values()) for name, _, scores, _ in scored if name == task
        ]
        assert max(values)[0] == 1
        assert min(values)[0] == 0
        assert (
            task == "pseudo_to_code"
            or sum(any(0 < value < 1 for value in row) for row in values) > 10
        )


def score_programs(names: Sequence[str]) -> dict[str, dict[str, float]]:
    records = [
        {"prediction": PROGRAMS[name][0], "item": {"testcases": PROGRAMS[name][1]}}
        for name in names
    ]
    with ThreadPoolExecutor(4) as threads:
        return dict(
            zip(
                names,
                threads.map(EVALUATORS["pseudo_to_code"].score, records),
                strict=True,
            )
        )


def test_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are right, wrong, late, or crash have the official scores when they run in the sandbox."""
    require_sandbox(monkeypatch)
    # Several outputs have the same program.
    monkeypatch.setattr(tasks, "compile_program", cache(tasks.compile_program))
    endless = [name for name in PROGRAMS if "endless" in name]
    scores = score_programs([name for name in PROGRAMS if name not in endless])
    # A program that never ends is late at any limit, so a short one saves time.
    monkeypatch.setattr(tasks, "_SECONDS", 0.5)
    scores |= score_programs(endless)
    assert scores == {
        name: json.loads(said) for name, said in GOLDEN["programs"].items()
    }
    assert sum(found["accuracy"] for found in scores.values()) >= 10
