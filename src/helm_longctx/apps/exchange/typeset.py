"""Writes the wide tables of a suite for papers, as LaTeX with booktabs and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from helm_longctx.apps.exchange.tables import Wide, wide_tables
from helm_longctx.documents.numbers import MARK, one_line, percent, range_text
from helm_longctx.results.boards import Suite
from helm_longctx.results.reading import Result
from helm_longctx.tasks.benchmark import Benchmark

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
    "Scores in percent, with 95 % intervals in parentheses. † marks a score that is not comparable. Requests without "
    "an answer are in no score; their number follows a score as “n failed”."
)


def write_markdown(suite: Suite, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `scores.md` with a table for each benchmark and length, and yield it with its number of rows."""
    return _write(suite, folder / "scores.md", ABOUT, _markdown)


def write_latex(suite: Suite, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write `scores.tex`, which a paper can include, and yield it with its number of rows. It needs booktabs."""
    return _write(suite, folder / "scores.tex", f"% {ABOUT.translate(_LATEX)}", _latex)


def _write(suite: Suite, path: Path, about: str, show: Callable[[Wide], str]) -> Iterator[tuple[Path, int]]:
    tables = list(wide_tables(suite.boards))
    path.write_text("\n\n".join([about, *map(show, tables)]) + "\n", encoding="utf-8")
    yield path, sum(len(table.rows) for table in tables)


def _texts(table: Wide, escapes: Mapping[int, str]) -> list[list[str]]:
    """Return the headings and the rows as escaped texts."""
    rows = [
        [one_line(model), *(_text(cells.get(part)) for part in table.columns)] for model, cells in table.rows.items()
    ]
    return [[text.translate(escapes) for text in row] for row in (["Model", *table.columns.values()], *rows)]


def _markdown(table: Wide) -> str:
    align = ["---", *("---:" for _ in table.columns)]
    header, *rows = _texts(table, _MARKDOWN)
    lines = [f"| {' | '.join(cells)} |" for cells in (header, align, *rows)]
    return "\n".join([f"**{table.title}**", "", *lines])


def _latex(table: Wide) -> str:
    header, *rows = [f"{' & '.join(cells)} \\\\" for cells in _texts(table, _LATEX)]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{table.title.translate(_LATEX)}. {ABOUT.translate(_LATEX)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        header,
        r"\midrule",
        # After the end of a row, a bracket or a star would be an argument of that end.
        *(f"{{}}{row}" if row.startswith(("[", "*")) else row for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _text(score: Result | None) -> str:
    """Return a cell such as `41.2† (35.0–47.6), 3 failed`."""
    if score is None:
        return NO_SCORE
    interval, failed = score.interval, f", {score.failed} failed" if score.failed else ""
    if not score.has_score:
        return f"{NO_SCORE}{failed}"
    mark = MARK if score.caveats else ""
    ends = range_text(interval.low, interval.high)
    return f"{percent(interval.mean)}{mark}{f' ({ends})' * bool(ends)}{failed}"
