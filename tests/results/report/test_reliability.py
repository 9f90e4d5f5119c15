"""Tests of the page that says which tasks are worth their price."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean

import numpy as np
import pytest

from helm_longctx.apps.reliability.sections import find_reliability, reliability_sections
from helm_longctx.documents.document import Cell, Table
from helm_longctx.results.boards import Board
from helm_longctx.tasks.task import MAIN_METRIC

K = 1024

MakeBoard = Callable[..., Board]

RECALL = "helmet_recall:task=json_kv"


def cells(board: Board, choice: str) -> dict[str, dict[str, Cell]]:
    """Return the cells of the table at a length, by task and column."""
    (section,) = (
        reliability_section
        for reliability_section in reliability_sections(board)
        if reliability_section.choice == choice
    )
    (table,) = section.blocks
    assert isinstance(table, Table)
    return {
        row[0].text.removesuffix(" †"): dict(zip(table.header, row, strict=True))
        for row in table.rows
    }


def test_variances_are_those_of_repeats(board_of: MakeBoard) -> None:
    """The variances within and between questions are equal to the analysis of a table of equally often asked questions."""
    skills = {"acme/one": 0.6, "longctx/null": 0.1}
    board = board_of([f"{RECALL},length=8k,repeats=4"], skills, instances=30)
    row = cells(board, "8k")["JSON KV"]
    result = board.score("acme/one", "json_kv", 8 * K)
    assert result
    by_question: dict[str, list[float]] = {}
    for answer in result.answers:
        if answer.score is not None:
            by_question.setdefault(answer.instance, []).append(answer.score)
    squares = [(score - fmean(scores)) ** 2 for scores in by_question.values() for score in scores]
    count = sum(map(len, by_question.values()))
    within = sum(squares) / (count - len(by_question))
    assert row["Between repeats"].value == pytest.approx(math.sqrt(within))
    assert row["Seed noise"].value == pytest.approx(math.sqrt(within / count))
    assert "Signal" not in row  # one model has none
    assert row["Tokens per answer"].value == 7040
    assert row["Dollars per answer"].value == pytest.approx(0.02)


def test_signals_are_over_own_and_published_models(mixed: Board) -> None:
    """Signals are over own and published models without floors, and published noise comes from the widest interval."""
    at_8k = cells(mixed, "8k")
    published = [each.interval for each in mixed.ranking(8 * K, "nq")]
    noise = np.mean([((each.high - each.low) / (2 * 1.959964)) ** 2 for each in published])
    assert at_8k["NQ"]["Noise"].value == pytest.approx(math.sqrt(noise), rel=1e-4)
    assert at_8k["NQ"]["Signal"].value == pytest.approx(
        math.sqrt(np.var([each.mean for each in published], ddof=1) - noise), rel=1e-4
    )
    assert at_8k["NQ"]["Models"].value == len(published) == 59
    assert at_8k["RAG"]["Models"].value == 65
    assert -1 <= (at_8k["RAG"]["Monotonicity"].value or 0) < -0.8
    by_part = {each.part: each for each in find_reliability(mixed, 8 * K)}
    assert by_part["json_kv"].models == 2 + 59  # without the null model
    assert by_part["json_kv"].tokens == 7040


def test_noise_is_the_standard_error(board_of: MakeBoard) -> None:
    """The noise is the standard error of own models with its clusters, and a category combines the noise of its tasks.

    Scores of a single answer have no standard error, so there is no noise and no signal.
    """
    skills = {"acme/one": 0.9, "acme/two": 0.6, "acme/three": 0.4}
    board = board_of(["helmet_longqa:length=8k"], skills, instances=18)
    found = {each.part: each.signal for each in find_reliability(board, 8 * K)}
    squares = []
    for task in board.tasks_of("helmet_longqa", 8 * K):
        results = [board.score(model, task, 8 * K) for model in skills]
        squares.append(
            fmean(result.statistics[MAIN_METRIC].error ** 2 for result in results if result)
        )
        signal = found[task]
        assert signal
        assert signal.noise == pytest.approx(math.sqrt(squares[-1]))
    assert len(squares) == 3
    category = found["helmet_longqa"]
    assert category
    assert category.noise == pytest.approx(math.sqrt(sum(squares)) / 3)
    single = board_of(["helmet_longqa:length=16k"], skills, instances=1)
    reliabilities = find_reliability(single, 16 * K)
    assert reliabilities
    assert all(reliability.signal is None for reliability in reliabilities)


def test_partial_categories_and_empty_pages_are_hidden(board_of: MakeBoard) -> None:
    """A single model that was asked once gives no page, and scores that are not comparable are marked."""
    assert reliability_sections(board_of([f"{RECALL},length=8k"], {"acme/one": 0.9})) == []
    board = board_of([f"{RECALL},length=8k"], {"acme/two": 0.5, "acme/three": 0.7})
    (section,) = reliability_sections(board)
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert [row[0].text for row in table.rows] == ["JSON KV †"]
    assert "failed requests" in table.rows[0][0].note
    assert "repeats=" in table.about
