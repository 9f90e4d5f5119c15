"""Writes the wide tables of a suite for papers, as LaTeX with booktabs and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from helm_longctx.apps.exchange.tables import Wide, wide_tables
from helm_longctx.documents.document import Cell, Column, Table
from helm_longctx.documents.numbers import escape_markdown, escape_tex
from helm_longctx.documents.paper import latex_table, markdown_table
from helm_longctx.results.boards import Suite
from helm_longctx.results.cells import score_cell
from helm_longctx.results.reading import Result
from helm_longctx.tasks.benchmark import Benchmark

ABOUT = (
    "Scores in percent, with 95 % intervals in parentheses. † marks a score that is not comparable. Requests without "
    "an answer are in no score; their number follows as “n failed”."
)


def write_markdown(suite: Suite, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `scores.md` with a table for each benchmark and length, and yield it with its number of rows."""
    tables = list(map(_table, wide_tables(suite.boards)))
    texts = [f"**{escape_markdown(table.title)}**\n\n{markdown_table(table)}" for table in tables]
    yield _write(folder / "scores.md", [escape_markdown(ABOUT), *texts]), sum(len(table.rows) for table in tables)


def write_latex(suite: Suite, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `scores.tex`, which a paper can include, and yield it with its number of rows. It needs booktabs."""
    tables = list(map(_table, wide_tables(suite.boards)))
    texts = [latex_table(replace(table, about=ABOUT)) for table in tables]
    yield _write(folder / "scores.tex", [f"% {escape_tex(ABOUT)}", *texts]), sum(len(table.rows) for table in tables)


def _write(path: Path, texts: Sequence[str]) -> Path:
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


def _table(wide: Wide) -> Table:
    heads = [Column("Model", is_number=False), *map(Column, wide.columns.values())]
    rows = [[Cell(model), *(_cell(scores.get(part)) for part in wide.columns)] for model, scores in wide.rows.items()]
    return Table("scores", wide.title, heads, rows)


def _cell(score: Result | None) -> Cell:
    """Return a score such as `41.2 † (35.0–47.6, 3 failed)`."""
    cell = score_cell(score)
    failed = f"{score.failed} failed" if score and score.failed else ""
    return replace(cell, detail=", ".join(filter(None, (cell.detail, failed))))
