"""The page of heat tables: scores of models by length, for each category and each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helm_longctx.results.boards import Board, label
from helm_longctx.results.means import OVERALL
from helm_longctx.results.report.cells import all_models, short_name
from helm_longctx.results.report.document import Figure, Section
from helm_longctx.results.report.plots import heat_tables

_ABOUT = (
    "Each panel has a row for each model, your models first, and a column for each length. Choose above which models are"
    " shown. † marks scores that are not comparable."
)


def heat_sections(board: Board) -> list[Section]:
    """Return the scores of categories by length, as Figures 6 and 7 of HELMET's paper, and those of tasks.

    Nothing for a benchmark with a single length.
    """
    if len(board.lengths) < 2:
        return []
    name = f"heat-{board.file_name}"
    averaged = [OVERALL] if len(board.columns) > 1 else []
    found = [
        (name, "Scores by length", board.titles[OVERALL], [*averaged, *board.columns, *board.others]),
        *((f"{name}-{part}", "", board.titles[part], _tasks(board, part)) for part in (*board.columns, *board.others)),
    ]
    figures = [figure for each, *about, parts in found if (figure := _figure(board, each, *about, parts))]
    sections = [Section(name, "Scores of models by length", figures[:1], _ABOUT)] if figures else []
    return [*sections, Section(f"{name}-tasks", "Scores of tasks by length", figures[1:])] if figures[1:] else sections


def _tasks(board: Board, part: str) -> list[str]:
    """Return the tasks of a category with several; another part has none of its own."""
    category = board.benchmark.entries.get(part)
    return [task.name for task in category.tasks] if category and len(category.tasks) > 1 else []


def _figure(board: Board, name: str, title: str, part: str, parts: Sequence[str]) -> Figure | None:
    rows = [row for part in parts for model in all_models(board) if (row := _row(board, model, part))]
    if not rows:
        return None
    titles = list(dict.fromkeys(row["part"] for row in rows))
    unit = f"length in {board.benchmark.axis.unit}" if board.benchmark.axis else "length"
    spec = heat_tables(titles, [label(length) for length in board.lengths], unit)
    about = f"Score in percent: {', '.join(titles)}."
    return Figure(name, title or part, about, spec, rows, by_model=True)


def _row(board: Board, model: str, part: str) -> dict[str, Any] | None:
    found = {label(length): score for length in board.lengths if (score := board.score(model, part, length))}
    if not found:
        return None
    marked = [length for length, score in found.items() if score.caveats]
    scores = {length: round(score.interval.mean, 4) for length, score in found.items()}
    return {"model": short_name(model), "part": board.titles[part], **scores, **({"marked": marked} if marked else {})}
