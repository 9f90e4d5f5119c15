"""Tests of means over tasks that ask about the same texts."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from pathlib import Path

import pytest

from helm_longctx.results.boards import OVERALL, Board, read_suite
from helm_longctx.results.statistics.intervals import mean_of_means
from helm_longctx.tasks.registry import find_benchmark
from tests.apps.report.suites import write_suite

K = 1024

CATEGORIES = ["recall", "rag", "icl", "cite", "rerank", "longqa", "summ"]


def make_board(suite: Path, shared: bool) -> Board:
    """Return the board of all of HELMET at 8k, in which three questions are about each text of long questions and summaries."""
    write_suite(
        suite,
        [f"helmet_{name}:length=8k" for name in CATEGORIES],
        {"acme/one": 0.7},
        instances=36,
    )
    for name in ("longqa", "summ"):
        (path,) = suite.glob(f"helmet_{name}*/scenario_state.json")
        content = json.loads(path.read_text())
        for state in content["request_states"]:
            task, number = state["instance"]["id"].rsplit("-", 1)
            text = int(number) // 3
            state["instance"]["extra_data"]["group"] = (
                f"text {text}" if shared else f"text {task} {text}"
            )
        path.write_text(json.dumps(content, indent=2))
    (board,) = read_suite(suite, [find_benchmark("helmet")]).boards
    return board


@pytest.fixture
def boards(tmp_path: Path) -> tuple[Board, Board]:
    """Return boards of the same scores: in one each task has its own texts, and in the other tasks share texts."""
    return make_board(tmp_path / "apart", shared=False), make_board(
        tmp_path / "shared", shared=True
    )


def test_shared_texts_make_intervals_wider(boards: tuple[Board, Board]) -> None:
    """Shared texts make intervals and standard errors of means over tasks and categories larger, and leave scores unchanged."""
    for part in ("helmet_longqa", OVERALL):
        apart, shared = (board.score("acme/one", part, 8 * K) for board in boards)
        assert apart
        assert shared
        assert shared.interval.mean == apart.interval.mean
        assert (
            shared.interval.high - shared.interval.low
            > apart.interval.high - apart.interval.low
        )
        assert shared.error > apart.error
        tasks = apart.weighted_tasks
        independent = mean_of_means(
            [task.interval for task, _ in tasks],
            weights=[weight for _, weight in tasks],
        )
        assert astuple(apart.interval) == pytest.approx(astuple(independent))


def test_each_task_has_its_own_interval(boards: tuple[Board, Board]) -> None:
    """Texts that a task shares with others change neither its own interval nor the intervals of other categories."""
    apart, shared = boards
    for part in ("narrativeqa", "infbench_qa", "helmet_rag"):
        ours, theirs = (
            board.score("acme/one", part, 8 * K) for board in (shared, apart)
        )
        assert ours
        assert theirs
        assert ours.interval == theirs.interval
        assert not math.isnan(ours.error)
