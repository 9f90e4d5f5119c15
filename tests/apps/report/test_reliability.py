"""Tests of the columns that say how far the score of a task can be trusted: signal to noise, and seed noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean

import numpy as np
import pytest

from helm_longctx.apps.report.leaderboard import (
    find_seed_noise,
    find_signal,
    leaderboard_sections,
)
from helm_longctx.documents.document import Cell, Table
from helm_longctx.results.boards import Board
from helm_longctx.tasks.task import MAIN_METRIC

K = 1024

MakeBoard = Callable[..., Board]

RECALL = "helmet_recall:task=json_kv"


def task_rows(board: Board, choice: str) -> list[dict[str, Cell]]:
    """Return the rows of the table of tasks at a length, by column."""
    (section,) = (
        section for section in leaderboard_sections(board) if section.choice == choice
    )
    table = section.blocks[-1]
    assert isinstance(table, Table)
    assert table.title == "Your scores by task"
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def test_seed_noise_is_that_of_repeats(board_of: MakeBoard) -> None:
    """Seed noise equals the analysis of a table of equally often asked questions; without repeats it is not known."""
    skills = {"acme/one": 0.6, "longctx/null": 0.1}
    board = board_of([f"{RECALL},length=8k,repeats=4"], skills, instances=30)
    result = board.score("acme/one", "json_kv", 8 * K)
    assert result
    by_question: dict[str, list[float]] = {}
    for answer in result.answers:
        if answer.score is not None:
            by_question.setdefault(answer.instance, []).append(answer.score)
    squares = [
        (score - fmean(scores)) ** 2
        for scores in by_question.values()
        for score in scores
    ]
    count = sum(map(len, by_question.values()))
    within = sum(squares) / (count - len(by_question))
    row = next(row for row in task_rows(board, "8k") if row["Model"].text == "acme/one")
    assert row["Seed noise"].value == pytest.approx(math.sqrt(within / count))
    assert row["Signal to noise"].value is None  # one model has none
    once = board_of([f"{RECALL},length=16k"], {"acme/one": 0.6}).score(
        "acme/one", "json_kv", 16 * K
    )
    assert once
    assert find_seed_noise(once) is None


def test_signals_are_over_own_and_published_models(mixed: Board) -> None:
    """Signals are over own and published models without floors, and published noise comes from the widest interval."""
    published = [ranked_model.interval for ranked_model in mixed.ranking(8 * K, "nq")]
    noise = np.mean([((row.high - row.low) / (2 * 1.959964)) ** 2 for row in published])
    signal = find_signal(mixed, "nq", 8 * K)
    assert signal
    assert signal.noise == pytest.approx(math.sqrt(noise), rel=1e-4)
    variance = np.var([row.mean for row in published], ddof=1)
    assert signal.signal == pytest.approx(math.sqrt(variance - noise), rel=1e-4)
    (row, *_) = [row for row in task_rows(mixed, "8k") if row["Task"].text == "JSON KV"]
    own = find_signal(mixed, "json_kv", 8 * K)
    assert own
    assert row["Signal to noise"].value == pytest.approx(own.ratio)


def test_noise_is_the_standard_error(board_of: MakeBoard) -> None:
    """The noise is the standard error of own models with its clusters.

    Scores of a single answer have no standard error, so there is no noise and no signal.
    """
    skills = {"acme/one": 0.9, "acme/two": 0.6, "acme/three": 0.4}
    board = board_of(["helmet_longqa:length=8k"], skills, instances=18)
    for task in board.tasks_of("helmet_longqa", 8 * K):
        results = [board.score(model, task, 8 * K) for model in skills]
        errors = [result.statistics[MAIN_METRIC].error for result in results if result]
        signal = find_signal(board, task, 8 * K)
        assert signal
        assert signal.noise == pytest.approx(
            math.sqrt(fmean(error**2 for error in errors))
        )
    single = board_of(["helmet_longqa:length=16k"], skills, instances=1)
    tasks = single.tasks_of("helmet_longqa", 16 * K)
    assert tasks
    assert all(find_signal(single, task, 16 * K) is None for task in tasks)


def test_fewer_than_three_models_have_no_signal(board_of: MakeBoard) -> None:
    """Two models say nothing about how well a task tells models apart."""
    board = board_of([f"{RECALL},length=8k"], {"acme/two": 0.5, "acme/three": 0.7})
    assert find_signal(board, "json_kv", 8 * K) is None
