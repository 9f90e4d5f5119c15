"""Marks scores that are not comparable in HELM's tables and on its pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson
from helm.benchmark.presentation.table import Cell, HeaderCell, Table

from helm_longctx.report.comparability import MARK, Lack, describe
from helm_longctx.runs.files import SCENARIO, read_json, reading, replace_file

NOTES = f"{MARK} Not comparable"
"""Title of the column with the reasons."""


@dataclass(frozen=True)
class ScoreCell(Cell):
    """A cell in a column with marks.

    HELM's front end shows and sorts only `value`, so `value` is a text with the mark.

    Args:
        number: the score.
        lacking: why the score is not comparable; None if it is.
    """

    number: float | None = None
    lacking: list[Lack] | None = None


def with_lacks(cell: Cell, lacks: Sequence[Lack]) -> Cell:
    """Add the reasons why a cell's score is not comparable; without any, return the cell unchanged."""
    if not lacks or cell.value is None:
        return cell
    about = "\n".join((cell.description or "", f"{NOTES}: {'; '.join(describe(lacks))}"))
    return _score_cell(cell, number=cell.value, lacking=list(lacks), description=about)


def mark_table(table: Table) -> Table:
    """Mark the scores that are not comparable, and add a last column with the reasons.

    A table whose scores are all comparable is returned unchanged. A marked score is never the best of its column.
    """
    notes = [_note(table.header, row) for row in table.rows]
    if not any(notes):
        return table
    columns = [list(cells) for cells in zip(*table.rows, strict=True)]
    for place, cells in enumerate(columns):
        if any(_lacking(cell) for cell in cells):
            columns[place] = _mark_column(cells, table.header[place].lower_is_better)
    rows = [[*row, Cell(note)] for row, note in zip(zip(*columns, strict=True), notes, strict=True)]
    about = "Why scores with a mark do not compare with published ones, and with others in the table"
    return replace(table, header=[*table.header, HeaderCell(NOTES, description=about)], rows=rows)


def cell_text(cell: Mapping[str, Any]) -> str:
    """Return the text that a terminal shows for a cell that was written as JSON."""
    value = cell.get("number", cell.get("value"))
    mark = f" {MARK}" if cell.get("lacking") else ""
    return f"{value:.3f}{mark}" if isinstance(value, float) else "" if value is None else str(value)


def tag_run(run: Path, reasons: Sequence[str]) -> None:
    """Show on a run's page why its scores are not comparable, as tags of its scenario.

    Raises:
        InputError: the run's `scenario.json` is damaged.
    """
    path = run / SCENARIO
    if not path.is_file():
        return
    scenario = read_json(path)
    with reading(path):
        # Removes the tags of an earlier call, whose reasons may no longer apply.
        tags = [tag for tag in scenario["tags"] if not tag.startswith(MARK)]
    if (new_tags := [*tags, *(f"{MARK} {reason}" for reason in reasons)]) != scenario["tags"]:
        replace_file(path, orjson.dumps({**scenario, "tags": new_tags}, option=orjson.OPT_INDENT_2))


def _note(header: Sequence[HeaderCell], row: Sequence[Cell]) -> str | None:
    """Return why scores of a row are not comparable, each reason with its columns."""
    columns: dict[str, list[str]] = {}
    for title, cell in zip(header, row, strict=True):
        for reason in describe(_lacking(cell)):
            columns.setdefault(reason, []).append(str(title.value))
    return "; ".join(f"{', '.join(titles)}: {reason}" for reason, titles in columns.items()) or None


def _lacking(cell: Cell) -> list[Lack]:
    return getattr(cell, "lacking", None) or []


def _mark_column(cells: Sequence[Cell], lower_is_better: bool | None) -> list[Cell]:
    """Turn a column's scores into texts of one width, which the front end sorts in the order of the numbers."""
    scores = [float(cell.value) for cell in cells if cell.value is not None]
    comparable = [float(cell.value) for cell in cells if cell.value is not None and not _lacking(cell)]
    best = None
    if comparable and lower_is_better is not None:
        best = min(comparable) if lower_is_better else max(comparable)
    # The front end sorts texts by character, so numbers need the same number of digits before the point.
    width = len(f"{max(scores):.6f}")
    return [cell if cell.value is None else _text_cell(cell, width, best) for cell in cells]


def _text_cell(cell: Cell, width: int, best: float | None) -> Cell:
    number = float(cell.value)
    # HELM made the best of all scores bold, marked ones included.
    style = {name: value for name, value in (cell.style or {}).items() if name != "font-weight"}
    if _lacking(cell):
        text = f"{number:{width - 3}.3f} {MARK}"
    else:
        text = f"{number:{width}.6f}"
        style |= {"font-weight": "bold"} if number == best else {}
    return _score_cell(cell, value=text, number=number, style=style)


def _score_cell(cell: Cell, **changes: Any) -> ScoreCell:
    return ScoreCell(**{**{field.name: getattr(cell, field.name) for field in fields(cell)}, **changes})
