"""Writes the wide tables of a suite for papers, as LaTeX with booktabs and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from helm_longctx.formats.tables import Cell, Wide, wide_tables
from helm_longctx.protocol.benchmark import Benchmark

NO_SCORE = "–"

_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "†": r"$^\dagger$",
    }
)
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\|`*_<>[]"})

ABOUT = (
    "Scores in percent, with 95 % intervals in brackets. † marks a score that is not comparable. Requests without an "
    "answer are in no score; their number follows a score as “n failed”."
)


def write_markdown(suite: Path, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `scores.md` with a table for each benchmark and length, and yield it with its number of rows.

    Raises:
        InputError: a file of a run is damaged.
    """
    tables = list(wide_tables(suite, benchmarks))
    parts = [ABOUT, *(_markdown(table) for table in tables)]
    yield _write(folder / "scores.md", parts), sum(len(table.rows) for table in tables)


def write_latex(suite: Path, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `scores.tex`, which a paper can include, and yield it with its number of rows. It needs booktabs.

    Raises:
        InputError: a file of a run is damaged.
    """
    tables = list(wide_tables(suite, benchmarks))
    parts = [f"% {ABOUT.translate(_LATEX)}", *(_latex(table) for table in tables)]
    yield _write(folder / "scores.tex", parts), sum(len(table.rows) for table in tables)


def _write(path: Path, parts: Iterable[str]) -> Path:
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _markdown(table: Wide) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    header = ["Model", *(title.translate(_MARKDOWN) for title in table.columns.values())]
    rows = [
        [model.translate(_MARKDOWN), *(_text(cells.get(name)).translate(_MARKDOWN) for name in table.columns)]
        for model, cells in table.rows.items()
    ]
    align = ["---", *("---:" for _ in table.columns)]
    return "\n".join([f"**{table.title}**", "", line(header), line(align), *map(line, rows)])


def _latex(table: Wide) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"{' & '.join(cells)} \\\\"

    header = ["Model", *(title.translate(_LATEX) for title in table.columns.values())]
    rows = [
        [model.translate(_LATEX), *(_text(cells.get(name)).translate(_LATEX) for name in table.columns)]
        for model, cells in table.rows.items()
    ]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{table.title.translate(_LATEX)}. {ABOUT.translate(_LATEX)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        line(header),
        r"\midrule",
        *map(line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _text(cell: Cell | None) -> str:
    """Return a cell such as `41.2† [35.0, 47.6], 3 failed`."""
    if cell is None:
        return NO_SCORE
    mean, low, high, _ = (cell.interval.mean, cell.interval.low, cell.interval.high, cell.interval.n)
    score = NO_SCORE if math.isnan(mean) else f"{100 * mean:.1f}{'†' if cell.lacking else ''}"
    ends = "" if math.isnan(high - low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    failed = f", {cell.failed} failed" if cell.failed else ""
    return f"{score}{ends}{failed}"
