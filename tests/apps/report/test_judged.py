"""Tests of the page that compares the judge's scores with other metrics of the same answers."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest
from scipy.stats import spearmanr

from helm_longctx.apps.correlations.sections import judged_sections
from helm_longctx.documents.document import Figure, Table
from helm_longctx.results.boards import Board

K = 1024
SKILLS = {
    "acme/one": 0.9,
    "acme/two": 0.6,
    "acme/three": 0.4,
    "acme/four": 0.2,
    "longctx/null": 0.0,
}


@pytest.fixture
def board(board_of: Callable[..., Board]) -> Board:
    """Return the board of five models in HELMET's long questions, of which one task is judged."""
    return board_of(["helmet_longqa:length=8k"], SKILLS, instances=30)


def test_correlations_are_over_the_same_answers(board: Board) -> None:
    """Correlations are over the answers and the means of all models except floors, and tasks without a judge are left out."""
    (section,) = judged_sections(board)
    table, scatter = section.blocks
    assert isinstance(table, Table)
    assert isinstance(scatter, Figure)
    assert {row[0].text for row in table.rows} == {"NarrativeQA"}
    results = [
        board.score(model, "narrativeqa", 8 * K)
        for model in SKILLS
        if model != "longctx/null"
    ]
    answers = [
        [row.values for row in result.answers if row.score is not None]
        for result in results
        if result
    ]
    for name, title in (("f1", "F1"), ("rougeL_recall", "ROUGE-L recall")):
        (row,) = (
            dict(zip(table.header, row, strict=True))
            for row in table.rows
            if row[2].text == title
        )
        pairs = [
            (values["judge_score"], values[name])
            for answer in answers
            for values in answer
        ]
        assert row["Over answers"].value == pytest.approx(spearmanr(pairs).statistic)
        assert row["Answers"].value == len(pairs)
        means = [
            [
                fmean(values[metric] for values in answer)
                for metric in ("judge_score", name)
            ]
            for answer in answers
        ]
        assert row["Over models"].value == pytest.approx(spearmanr(means).statistic)
        assert row["Models"].value == 4
    points = [row for row in scatter.rows if "model" in row]
    assert len(points) == sum(map(len, answers))
    assert {row["model"] for row in points} == SKILLS.keys() - {"longctx/null"}
    label = next(
        row
        for row in scatter.rows
        if (row.get("row"), row.get("column")) == ("judge_score", "rougeL_recall")
    )
    assert str(label["label"]).startswith(f"rho = {row['Over answers'].text} (")


def test_other_tasks_have_no_page(
    own: Board, published: Board, board_of: Callable[..., Board]
) -> None:
    """Tasks without a judge, published scores and floors alone give no page."""
    assert judged_sections(own) == []
    assert judged_sections(published) == []
    assert (
        judged_sections(board_of(["helmet_summ:length=8k"], {"longctx/null": 0.4}))
        == []
    )
