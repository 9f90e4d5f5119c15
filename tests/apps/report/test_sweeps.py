"""Tests of the page of tasks that differ in one property alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import vl_convert

from helm_longctx.apps.lengths.curves import sweep_sections
from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.documents.document import Figure, Section, Table
from helm_longctx.results.boards import Board

MakeBoard = Callable[..., Board]

SKILLS = {"acme/one": 0.9, "acme/two": 0.5, "longctx/lexical": 0.2}


@pytest.fixture
def board(board_of: MakeBoard) -> Board:
    """Return the board of three models in all needles at 8k, and of one of them in four tasks at 32k."""
    board_of(["ruler_needles:length=8k"], SKILLS)
    names = ("niah_single_2", "niah_values_8", "niah_multivalue", "niah_multikey_1")
    return board_of(
        [f"ruler_needles:task={name},length=32k" for name in names], {"acme/one": 0.9}
    )


def blocks(section: Section) -> tuple[Figure, dict[str, Table]]:
    """Return the plot, and the tables by title."""
    figure, *tables = section.blocks
    assert isinstance(figure, Figure)
    return figure, {table.title: table for table in tables if isinstance(table, Table)}


def test_curves_have_the_scores_of_the_tasks(board: Board) -> None:
    """Each model has a point for each level of each sweep, which has the score of the level's task."""
    figure, tables = blocks(
        next(
            sweep_section
            for sweep_section in sweep_sections(board)
            if sweep_section.choice == "8k"
        )
    )
    names = {
        "acme/one": "acme/one",
        "acme/two": "acme/two",
        "longctx/lexical": "lexical",
    }
    rows_by_level: dict[Any, Any] = {
        (row["model"], row["part"], row["level"]): row for row in figure.rows
    }
    assert len(rows_by_level) == len(figure.rows) == 3 * (5 + 5 + 5 + 3)
    for model, name in names.items():
        for sweep in BENCHMARK.sweeps:
            for level, task in sweep.tasks.items():
                result = board.score(model, task, 8192)
                assert result
                assert rows_by_level[name, sweep.title, level][
                    "score"
                ] == pytest.approx(result.interval.mean, abs=1e-6)
    assert {row["kind"] for row in figure.rows if row["model"] == "lexical"} == {
        "floor"
    }
    assert tables["Keys"].header == [
        "Model",
        "1",
        "2",
        "4",
        "8",
        "16",
        "Drop",
        "Effective level",
    ]
    assert tables["Distractors"].header[1:4] == ["noise", "essays", "needles"]
    assert vl_convert.vegalite_to_svg(figure.full_spec()).count(
        'aria-roledescription="point"'
    ) == len(figure.rows)


def test_drop_is_from_the_easiest_to_the_hardest_level(board: Board) -> None:
    """The drop is from the easiest to the hardest of the levels that the model has."""
    (section,) = (
        sweep_section
        for sweep_section in sweep_sections(board)
        if sweep_section.choice == "32k"
    )
    _, tables = blocks(section)
    assert list(tables) == ["Keys", "Values"]
    ((_, first, middle, last, drop, effective),) = tables["Values"].rows
    assert tables["Values"].header[1:4] == ["1", "4", "8"]
    assert None not in (first.value, last.value)
    assert drop.value == pytest.approx((first.value or 0) - (last.value or 0))
    enough = [
        level
        for level, cell in (("1", first), ("4", middle), ("8", last))
        if (cell.value or 0) >= 0.85 * (first.value or 0)
    ]
    assert effective.text == enough[-1]


def test_single_levels_have_no_curve(board_of: MakeBoard, own: Board) -> None:
    """Single levels, and benchmarks without sweeps, have no curves."""
    assert (
        sweep_sections(
            board_of(["ruler:task=niah_single_2,length=8k"], {"acme/one": 0.9})
        )
        == []
    )
    assert sweep_sections(own) == []
