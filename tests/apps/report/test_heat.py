"""Tests of the page of heat tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from helm_longctx.apps.lengths.curves import heat_sections
from helm_longctx.documents.document import Figure
from helm_longctx.documents.plots import write_picture
from helm_longctx.results.boards import Board

MakeBoard = Callable[..., Board]
LENGTHS = ("8k", "16k", "32k", "64k", "128k")


def figures(board: Board) -> dict[str, Figure]:
    """Return the heat tables by title."""
    blocks = [block for section in heat_sections(board) for block in section.blocks]
    assert all(isinstance(block, Figure) and block.by_model for block in blocks)
    return {block.title: block for block in blocks if isinstance(block, Figure)}


def test_all_published_models_are_there(published: Board) -> None:
    """The first table has the average and each category of all published models, and each other table a category's tasks."""
    tables = figures(published)
    assert list(tables) == [
        "Scores by length",
        "Recall",
        "RAG",
        "ICL",
        "Cite",
        "LongQA",
        "Summ",
        "RULER",
    ]
    rows = {(row["model"], row["part"]): row for row in tables["Scores by length"].rows}
    assert (
        len(rows) == 8 * 65 + 59
    )  # the notebook has 59 models, and RULER only for them
    # Source: static/images/results_length_main.png of HELMET at aaab7dc (gh-pages).
    printed = {
        "Average": (66.0, 64.5, 57.3, 46.3, 39.2),
        "Cite": (44.0, 42.7, 26.1, 3.1, 1.2),
    }
    for part, scores in printed.items():
        row = rows["GPT-4", part]
        assert [round(100 * row[length], 1) for length in LENGTHS] == list(scores)
    assert rows["Llama-4-17B", "RAG"].keys() == {"model", "part", *LENGTHS[:4]}
    recall = {row["part"] for row in tables["Recall"].rows}
    assert recall == {"JSON KV", "RULER MK Needle", "RULER MK UUID", "RULER MV"}
    assert sum(row["part"] == "JSON KV" for row in tables["Recall"].rows) == 59


def test_own_models_are_beside_them(mixed: Board) -> None:
    """Own models are the first rows, and lengths whose scores are not comparable are marked."""
    rows = figures(mixed)["Recall"].rows
    assert list(dict.fromkeys(row["model"] for row in rows))[:2] == [
        "acme/one",
        "acme/two",
    ]
    assert rows[0]["marked"]
    assert set(rows[0]["marked"]) <= rows[0].keys()
    assert not any("marked" in row for row in rows if row["model"] == "GPT-4")


def test_a_single_length_has_no_table(board_of: MakeBoard) -> None:
    """A suite with one length has no page of heat tables."""
    assert (
        heat_sections(
            board_of(["helmet_recall:task=json_kv,length=8k"], {"acme/one": 0.9})
        )
        == []
    )


def test_the_table_is_drawn(published: Board, tmp_path: Path) -> None:
    """A picture of a heat table has each score with its mark, and the lengths in order."""
    figure = figures(published)["Recall"]
    rows = [
        {**row, "marked": ["16k"]} for row in figure.rows if row["model"] == "GPT-4"
    ]
    path = tmp_path / "heat.svg"
    write_picture(figure.full_spec(rows), path)
    text = path.read_text()
    assert [text.count(f">{score}<") for score in ("99.5†", "99.5", "33.0")] == [
        2,
        0,
        1,
    ]
