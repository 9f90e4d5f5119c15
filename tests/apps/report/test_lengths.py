"""Tests of what the pages of lengths, depths and correlations show."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from helm_longctx.apps.correlations.sections import task_sections
from helm_longctx.apps.lengths.curves import depth_sections, length_sections
from helm_longctx.apps.report.build import choose_models
from helm_longctx.apps.report.leaderboard import first_models
from helm_longctx.documents.document import Figure, Table
from helm_longctx.results.boards import Board, published_boards
from helm_longctx.tasks.registry import find_benchmark

MakeBoard = Callable[..., Board]


def test_drop_means_and_effective_length(published: Board) -> None:
    """The drop, the mean and the effective length are of the overall score, and LV-Eval's groups are means of its data sets."""
    _, table = length_sections(published)[0].blocks
    assert isinstance(table, Table)
    row = {row[0].text: [cell.value or 0 for cell in row] for row in table.rows}[
        "Gemini-1.5-Pro"
    ]
    assert row[-2] == pytest.approx(row[1] - row[5])
    assert row[-1] == 128 * 1024
    assert row[-5] == pytest.approx(fmean(row[1:6]))
    (lv_eval,) = published_boards([find_benchmark("lv_eval")])
    _, groups = length_sections(lv_eval)
    (figure,) = groups.blocks
    assert isinstance(figure, Figure)
    assert {row["part"] for row in figure.rows} == {
        "With confusing facts",
        "Without confusing facts",
    }
    assert len(figure.rows) == 2 * (10 * 5 + 1)


def test_own_models_are_first_and_other_means_are_marked(mixed: Board) -> None:
    """Own models come first, and a mean over other lengths than most models have has a mark with the reason."""
    curves, table = length_sections(mixed)[0].blocks
    assert isinstance(curves, Figure)
    assert isinstance(table, Table)
    assert list(dict.fromkeys(row["model"] for row in curves.rows))[:3] == [
        "acme/one",
        "acme/two",
        "null",
    ]
    assert [kind for kind, _ in table.bodies] == ["own", "floor", "other"]
    cells = dict(zip(table.header, table.rows[0], strict=True))
    assert cells["Mean"].text.endswith(" †")
    assert "over 8k, 32k" in cells["Mean"].note
    by_model = {
        row[0].text: dict(zip(table.header, row, strict=True)) for row in table.rows
    }
    assert not by_model["GPT-4o-08"]["Mean"].text.endswith("†")
    short = next(
        cells
        for cells in by_model.values()
        if cells["128k"].value is None and cells["Model"].detail
    )
    assert short["Mean"].text.endswith(" †")


def test_columns_and_panels_have_scores(mixed: Board, board_of: MakeBoard) -> None:
    """A length without a score has no column, and a single length gives no page."""
    _, table = length_sections(mixed)[0].blocks
    assert isinstance(table, Table)
    for position in range(1, 6):
        assert any(row[position].value is not None for row in table.rows)
    assert (
        length_sections(
            board_of(["helmet_recall:task=json_kv,length=8k"], {"acme/one": 0.9})
        )
        == []
    )


def test_depths_are_those_of_own_runs(own: Board, published: Board) -> None:
    """Depths of own runs are shown without marks if all models have the same tasks, and results without depths give no page."""
    assert depth_sections(published) == []
    (figure,) = depth_sections(own)[0].blocks
    assert isinstance(figure, Figure)
    assert {row["depth"] for row in figure.rows} == {
        f"{depth} %" for depth in (0, 20, 40, 60, 80, 100)
    }
    assert not any("mark" in row for row in figure.rows)


def test_depths_of_baselines_alone_are_shown(board_of: MakeBoard) -> None:
    """The page of depths shows rows of floors even if there are no other models."""
    board = board_of(
        ["helmet_recall:task=json_kv,length=8k"], {"longctx/null": 0.2}, published=True
    )
    sections = depth_sections(board)
    (figure,) = sections[0].blocks
    assert isinstance(figure, Figure)
    assert {(row["model"], row["kind"]) for row in figure.rows} == {("null", "floor")}
    assert choose_models(first_models(board), sections) == {}


def test_depths_over_fewer_tasks_are_marked(board_of: MakeBoard) -> None:
    """A mean at a depth over fewer tasks than other models have is marked."""
    board_of(["helmet_recall:length=8k"], {"acme/all": 0.8})
    board = board_of(["helmet_recall:task=json_kv,length=8k"], {"acme/part": 0.8})
    (figure,) = depth_sections(board)[0].blocks
    assert isinstance(figure, Figure)
    assert {(row["model"], row.get("mark", "")) for row in figure.rows} == {
        ("acme/all", ""),
        ("acme/part", "†"),
    }


def test_each_task_has_a_map_of_its_depths(own: Board, board_of: MakeBoard) -> None:
    """Each task has a map with the mean of the answers at each depth, after the pooled map, unless there is only one task."""
    pooled, by_task = depth_sections(own)
    assert len(pooled.blocks) == 1
    figures = {
        block.title: block for block in by_task.blocks if isinstance(block, Figure)
    }
    assert list(figures) == [own.titles[task] for task in own.columns]
    for figure in figures.values():
        assert (
            figure.spec["facet"]["sort"][-1] == "null"
        )  # not in the order of the alphabet
    task = own.columns[3]
    for row in figures[own.titles[task]].rows:
        if row["kind"] == "own":
            result = own.score(str(row["model"]), task, 16 * 1024)
            assert result
            answer_scores = [
                answer.score
                for answer in result.answers
                if row["depth"] == f"{answer.depth:.0%}".replace("%", " %")
            ]
            scores = [score for score in answer_scores if score is not None]
            assert (row["n"], row["score"]) == (
                len(scores),
                pytest.approx(fmean(scores)),
            )
    assert sum(
        int(str(row["n"])) for figure in figures.values() for row in figure.rows
    ) == sum(
        int(str(row["n"]))
        for block in pooled.blocks
        if isinstance(block, Figure)
        for row in block.rows
    )
    assert (
        len(
            depth_sections(
                board_of(["helmet_recall:task=json_kv,length=8k"], {"acme/one": 0.9})
            )
        )
        == 1
    )


def test_correlations_have_their_numbers(published: Board) -> None:
    """Each correlation has rho, p, interval and n, and the scatter plot has a label for each pair."""
    first = task_sections(published)[0]
    heat, scatter = first.blocks
    assert isinstance(heat, Figure)
    assert isinstance(scatter, Figure)
    cell = next(
        row for row in heat.rows if (row["row"], row["column"]) == ("Recall", "RAG")
    )
    assert {"rho", "p", "low", "high", "n"} < cell.keys()
    assert cell["n"] == 59
    label = next(
        row["label"]
        for row in scatter.rows
        if (row.get("row"), row.get("column")) == ("helmet_recall", "helmet_rag")
    )
    assert label == f"rho = {cell['rho']:.2f}, p < 0.001, n = 59"
