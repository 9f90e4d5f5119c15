"""Shows intervals, and marks scores that are not comparable, in HELM's tables and on its pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson
from helm.benchmark.presentation.table import Cell, HeaderCell, Table

from helm_longctx.report.comparability import MARK, Lack, describe
from helm_longctx.runs.files import SCENARIO, read_json, reading, replace_file
from helm_longctx.statistics.intervals import Interval

NOTES = f"{MARK} Not comparable"
"""Title of the column with the reasons."""

_MOST_TITLES = 5
"""Largest number of columns that a reason names. With more, a row would be higher than the page."""


@dataclass(frozen=True)
class ScoreCell(Cell):
    """A cell in a column with marks.

    HELM's front end shows and sorts only `value`, so `value` is a text with the mark.

    Args:
        number: the score; None if there is none.
        low, high: the ends of the 95 % interval, if they are known.
        lacking: the reasons why the score is not comparable; None if it is comparable.
        reason: the reason why there is no score.
    """

    number: float | None = None
    low: float | None = None
    high: float | None = None
    lacking: list[Lack] | None = None
    reason: str | None = None


def add_interval(cell: Cell, interval: Interval | None) -> Cell:
    """Add the interval of a cell's score; without a known interval, return the cell unchanged."""
    if cell.value is None or interval is None or not math.isfinite(interval.high - interval.low):
        return cell
    about = f"{cell.description or ''}\n95 % interval: {interval.low:.3f} to {interval.high:.3f}"
    return _score_cell(cell, number=cell.value, low=interval.low, high=interval.high, description=about)


def add_lacks(cell: Cell, lacks: Sequence[Lack]) -> Cell:
    """Add the reasons why a cell's score is not comparable; without any, return the cell unchanged."""
    if not lacks or cell.value is None:
        return cell
    about = f"{cell.description or ''}\n{NOTES}: {'; '.join(describe(lacks))}"
    return _score_cell(cell, number=cell.value, lacking=list(lacks), description=about)


def mark_table(table: Table) -> Table:
    """Write intervals and marks into the cells, and add a last column with the reasons.

    A column without intervals and marks stays unchanged. A marked score is never the best of its column.
    """
    notes = [_note(table.header, row) for row in table.rows]
    columns = [list(cells) for cells in zip(*table.rows, strict=True)]
    for place, cells in enumerate(columns):
        if any(_number(cell) is not None for cell in cells):
            columns[place] = _mark_column(cells, table.header[place].lower_is_better)
    rows, header = [list(row) for row in zip(*columns, strict=True)], list(table.header)
    if any(notes):
        rows = [[*row, Cell(note)] for row, note in zip(rows, notes, strict=True)]
        about = "Why scores with a mark do not compare with published ones, and with others in the table"
        header.append(HeaderCell(NOTES, description=about))
    return replace(table, header=header, rows=rows)


def cell_text(cell: Mapping[str, Any]) -> str:
    """Return the text of a cell for terminals. The interval is on a second line.

    Args:
        cell: the cell as JSON data.
    """
    value = cell.get("number", cell.get("value"))
    if not isinstance(value, float):
        return "" if value is None else str(value)
    mark = f" {MARK}" if cell.get("lacking") else ""
    return f"{value:.3f}{mark}" + (f"\n{cell['low']:.2f}–{cell['high']:.2f}" if "low" in cell else "")


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
        # The tags of an earlier call are removed, because their reasons may no longer apply.
        tags = [tag for tag in scenario["tags"] if not tag.startswith(MARK)]
    if (new_tags := [*tags, *(f"{MARK} {reason}" for reason in reasons)]) != scenario["tags"]:
        replace_file(path, orjson.dumps({**scenario, "tags": new_tags}, option=orjson.OPT_INDENT_2))


def _note(header: Sequence[HeaderCell], row: Sequence[Cell]) -> str | None:
    """Return why scores of a row are missing or not comparable, each reason with its columns."""
    columns: dict[str, list[str]] = {}
    for title, cell in zip(header, row, strict=True):
        absent = getattr(cell, "reason", None)
        for reason in [*describe(_lacks_of(cell)), *([f"no score, because {absent}"] if absent else [])]:
            columns.setdefault(reason, []).append(str(title.value))
    return "; ".join(f"{_join(titles)}: {reason}" for reason, titles in columns.items()) or None


def _join(titles: Sequence[str]) -> str:
    more = len(titles) - _MOST_TITLES
    return ", ".join(titles[:_MOST_TITLES]) + (f" and {more} more" if more > 0 else "")


def _lacks_of(cell: Cell) -> list[Lack]:
    return getattr(cell, "lacking", None) or []


def _number(cell: Cell) -> float | None:
    """Return the score of a cell with an interval or a mark."""
    return getattr(cell, "number", None)


def _mark_column(cells: Sequence[Cell], lower_is_better: bool | None) -> list[Cell]:
    """Convert a column's scores to texts of equal width, which the front end sorts in the order of the numbers."""
    scores = [float(cell.value) for cell in cells if cell.value is not None]
    comparable = [float(cell.value) for cell in cells if cell.value is not None and not _lacks_of(cell)]
    best = None
    if comparable and lower_is_better is not None:
        best = min(comparable) if lower_is_better else max(comparable)
    # The front end sorts texts by character, so numbers need the same number of digits before the point.
    width = max(len(f"{score:.3f}") for score in scores)
    return [cell if cell.value is None else _text_cell(cell, width, best) for cell in cells]


def _text_cell(cell: Cell, width: int, best: float | None) -> Cell:
    number = float(cell.value)
    # HELM also considers marked scores for the best score, which is bold.
    style = {name: value for name, value in (cell.style or {}).items() if name != "font-weight"}
    if not _lacks_of(cell) and number == best:
        style |= {"font-weight": "bold"}
    low, high = getattr(cell, "low", None), getattr(cell, "high", None)
    tail = (f" {MARK}" if _lacks_of(cell) else "") + ("" if low is None else f" ({low:.3f}–{high:.3f})")
    # The front end shows a text that is a number with three decimals, but sorts it with all of them.
    text = f"{number:{width}.3f}{tail}" if tail else f"{number:{width + 3}.6f}"
    return _score_cell(cell, value=text, number=number, style=style)


def _score_cell(cell: Cell, **changes: Any) -> ScoreCell:
    # HELM's `Cell` is a frozen dataclass, so a cell with more fields is a new one.
    return ScoreCell(**{**{field.name: getattr(cell, field.name) for field in fields(cell)}, **changes})
