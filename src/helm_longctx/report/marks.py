"""Marks of what is not comparable, in HELM's tables and on its pages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson
from helm.benchmark.presentation.table import Cell, HeaderCell, Table

from helm_longctx.report.comparability import MARK, Lack, describe
from helm_longctx.report.files import read_json, reading

NOTES = f"{MARK} Not comparable"
"""Title of the column that says why."""


@dataclass(frozen=True)
class ScoreCell(Cell):
    """A cell in a column that has marks. HELM's front end shows and sorts `value`, and nothing else: so that is a text.

    Args:
        number: the score.
        lacking: why it is not comparable; None if it is.
    """

    number: float | None = None
    lacking: list[Lack] | None = None


def with_lacks(cell: Cell, lacks: Sequence[Lack]) -> Cell:
    """A cell that knows why its score is not comparable; the same if it is."""
    if not lacks or cell.value is None:
        return cell
    about = "\n".join((cell.description or "", f"{NOTES}: {'; '.join(describe(lacks))}"))
    return _score_cell(cell, number=cell.value, lacking=list(lacks), description=about)


def mark_table(table: Table) -> Table:
    """The table with a mark at each score that is not comparable, and a last column that says why; HELM's if all are.

    What is not comparable is not the best of its column.
    """
    notes = [_note(table.header, row) for row in table.rows]
    if not any(notes):
        return table
    columns = [list(cells) for cells in zip(*table.rows, strict=True)]
    for place, cells in enumerate(columns):
        if any(_lacking(cell) for cell in cells):
            columns[place] = _marked(cells, table.header[place].lower_is_better)
    rows = [[*row, Cell(note)] for row, note in zip(zip(*columns, strict=True), notes, strict=True)]
    about = "Why scores with a mark do not compare with published ones, and with others in the table"
    return replace(table, header=[*table.header, HeaderCell(NOTES, description=about)], rows=rows)


def cell_text(cell: Mapping[str, Any]) -> str:
    """What a terminal shows of a cell that was written as JSON."""
    value = cell.get("number", cell.get("value"))
    mark = f" {MARK}" if cell.get("lacking") else ""
    return f"{value:.3f}{mark}" if isinstance(value, float) else "" if value is None else str(value)


def tag_run(run: Path, reasons: Sequence[str]) -> None:
    """Say on a run's page why its scores are not comparable: as tags of its scenario, which the page shows.

    Raises:
        InputError: the run's `scenario.json` cannot be read.
    """
    path = run / "scenario.json"
    if not path.is_file():
        return
    scenario = read_json(path)
    with reading(path):
        tags = [tag for tag in scenario["tags"] if not tag.startswith(MARK)]
    if (wanted := [*tags, *(f"{MARK} {reason}" for reason in reasons)]) != scenario["tags"]:
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(orjson.dumps({**scenario, "tags": wanted}, option=orjson.OPT_INDENT_2))
        os.replace(part, path)


def _note(header: Sequence[HeaderCell], row: Sequence[Cell]) -> str | None:
    """Why scores of a row are not comparable, each reason with its columns."""
    columns: dict[str, list[str]] = {}
    for title, cell in zip(header, row, strict=True):
        for reason in describe(_lacking(cell)):
            columns.setdefault(reason, []).append(str(title.value).removesuffix(" - Score"))
    return "; ".join(f"{', '.join(titles)}: {reason}" for reason, titles in columns.items()) or None


def _lacking(cell: Cell) -> list[Lack]:
    return getattr(cell, "lacking", None) or []


def _marked(cells: Sequence[Cell], lower_is_better: bool | None) -> list[Cell]:
    """A column with its scores as texts, of one width, so that the front end sorts them as it would numbers."""
    scores = [float(cell.value) for cell in cells if cell.value is not None]
    comparable = [float(cell.value) for cell in cells if cell.value is not None and not _lacking(cell)]
    best = None
    if comparable and lower_is_better is not None:
        best = min(comparable) if lower_is_better else max(comparable)
    width = len(f"{max(scores):.6f}")
    return [cell if cell.value is None else _text_cell(cell, width, best) for cell in cells]


def _text_cell(cell: Cell, width: int, best: float | None) -> Cell:
    number = float(cell.value)
    style = {name: value for name, value in (cell.style or {}).items() if name != "font-weight"}
    if _lacking(cell):
        text = f"{number:{width - 3}.3f} {MARK}"
    else:
        text = f"{number:{width}.6f}"
        style |= {"font-weight": "bold"} if number == best else {}
    return _score_cell(cell, value=text, number=number, style=style)


def _score_cell(cell: Cell, **changes: Any) -> ScoreCell:
    return ScoreCell(**{**{field.name: getattr(cell, field.name) for field in fields(cell)}, **changes})
