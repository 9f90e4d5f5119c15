"""Tests of the page that ranks own models by all instances of all benchmarks."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from helm_longctx import environment
from helm_longctx.apps.pooling.sections import pool_boards, pooling_sections
from helm_longctx.apps.report.build import write_report
from helm_longctx.documents.document import Figure, HeadlineAnswer, Table
from helm_longctx.results.boards import Board, read_suite
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_suite

RECALL = "helmet_recall:task=json_kv,length=8k"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a suite of two benchmarks: one model has both, two models have one each, and the second benchmark is harder."""
    folder = tmp_path_factory.mktemp("pooled") / "runs" / "two"
    write_suite(
        folder,
        [RECALL],
        {"acme/easy": 0.7, "acme/both": 0.95, "longctx/null": 0.05},
        instances=60,
    )
    hard = ["lv_eval:length=64k,dataset=cmrc_mixup"]
    write_suite(folder, hard, {"acme/both": 0.4, "acme/hard": 0.75}, instances=60)
    write_suite(
        folder,
        ["helmet_rag:task=nq,length=8k,context=none"],
        {"acme/both": 0.4},
        instances=6,
    )
    return folder


@pytest.fixture(scope="module")
def boards(suite: Path) -> list[Board]:
    """Return the boards of the suite."""
    return list(read_suite(suite, BENCHMARKS, published=True).boards)


def test_models_are_ranked_although_they_lack_benchmarks(boards: list[Board]) -> None:
    """A model that answered only hard questions ranks first if it beats a model that beats the others, whatever its mean."""
    pooling = pool_boards(boards)
    assert pooling
    ranks = {model: rank.rank for model, rank in pooling.pooling.ranks.items()}
    assert ranks == {"acme/hard": 1, "acme/both": 2, "acme/easy": 3}
    assert pooling.left_out == ()
    assert (pooling.cells, pooling.most_cells) == (
        {"acme/easy": 1, "acme/both": 2, "acme/hard": 1},
        2,
    )
    answers = [
        answer
        for board in boards
        for cell_key, result in board.scores.items()
        if cell_key.model == "acme/both" and cell_key.context == "full"
        for answer in result.answers
        if answer.score is not None
    ]
    assert pooling.pooling.strengths["acme/both"].n == len(answers)
    (section,) = pooling_sections(boards)
    answer, plot, table = section.blocks
    assert isinstance(answer, HeadlineAnswer)
    assert isinstance(plot, Figure)
    assert isinstance(table, Table)
    assert answer.verdict.startswith("acme/hard ranks first of 3 models")
    assert (
        f"is {pooling.pooling.agreement(pooling.means).rho:.2f}, over 3 models"
        in answer.note
    )
    shown = {
        row[1].text: dict(zip(table.header, row, strict=True)) for row in table.rows
    }
    assert shown["acme/hard"]["Mean"].text.endswith(" †")
    assert not shown["acme/both"]["Mean"].text.endswith(" †")
    assert {model: row["Rank by mean"].text for model, row in shown.items()} == {
        "acme/hard": "–",
        "acme/both": "1",
        "acme/easy": "–",
    }
    for row in plot.rows:
        strength = pooling.pooling.strengths[str(row["model"])]
        assert row["score"] == pytest.approx(
            1 / (1 + math.exp(-strength.mean)), abs=1e-6
        )


def test_the_agreement_is_with_means_over_tasks_and_lengths(own: Board) -> None:
    """The mean of a model that has all tasks is the mean of its scores in the benchmark."""
    pooling = pool_boards([own])
    assert pooling
    for model, mean in pooling.means.items():
        scores = [
            score
            for task in own.columns
            if (score := own.score(model, task, 16 * 1024))
        ]
        assert mean == pytest.approx(fmean(score.interval.mean for score in scores))
    assert pooling.pooling.agreement(pooling.means).n == 3


def test_a_page_needs_two_models_that_differ(
    board_of: Callable[..., Board], published: Board
) -> None:
    """A page needs two own models that differ, apart from floors, and it names a model that never differs."""
    assert pooling_sections([published]) == []
    assert (
        pooling_sections(
            [board_of([RECALL], {"acme/one": 0.9, "longctx/null": 0.1}, published=True)]
        )
        == []
    )
    board = board_of(
        ["helmet_recall:task=json_kv,length=32k"], {"acme/two": 0.5, "acme/three": 0.8}
    )
    (section,) = pooling_sections([board])
    answer = section.blocks[0]
    assert isinstance(answer, HeadlineAnswer)
    assert "differ from no other model on any instance: acme/one." in answer.note


def test_without_choix_one_line_says_how_to_install_it(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line on the page says how to install choix if it is missing, and the rest of the report is written."""
    monkeypatch.setitem(environment.EXTRAS, "pooling", ("choix_is_not_there",))
    write_report(suite, BENCHMARKS, tmp_path, "html", published=False, server="")
    page = (tmp_path / "all-instances.html").read_text(encoding="utf-8")
    assert "install with: pip install &#39;helm-longctx[pooling]&#39;" in page
    assert "<figure" not in page
    assert (tmp_path / "helmet-runs.html").is_file()
