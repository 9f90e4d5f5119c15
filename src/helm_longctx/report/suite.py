"""Reads a suite: the folders and groups of its runs, and the tables that helm-summarize wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.entry import CLOSED_BOOK
from helm_longctx.protocol.lengths import parse_length
from helm_longctx.protocol.metric_names import CONDITIONS
from helm_longctx.report.comparability import find_outcome
from helm_longctx.report.marks import NOTES, cell_text
from helm_longctx.report.reference import read_reference
from helm_longctx.report.results import PUBLISHED
from helm_longctx.runs.files import RUN_SPEC, STATS, read_json, read_run_specs, reading

_LONGEST_NAME = 255
"""Bytes in the name of a folder on common file systems."""

_NO_SCORES = {NOTES, *(title for title, *_ in CONDITIONS.values())}
"""Headings of columns about the runs, which are not in printed tables."""

_NAMES = f"a folder name of at most {_LONGEST_NAME} bytes"


def suite_path(output_path: Path, suite: str) -> Path:
    """Return `<output path>/runs/<suite>`, which need not exist.

    Raises:
        InputError: the suite's name is not a folder name.
    """
    if suite in ("", ".", "..") or Path(suite).name != suite or len(suite.encode()) > _LONGEST_NAME:
        raise InputError(f"suite={shorten(suite)} is not allowed; allowed: {_NAMES}")
    return output_path / "runs" / suite


def suite_folder(output_path: Path, suite: str) -> Path:
    """Return the folder of an existing suite.

    Raises:
        InputError: the suite does not exist.
    """
    folder = suite_path(output_path, suite)
    if not folder.is_dir():
        # HELM makes a link `latest` beside the suites.
        suites = sorted(path.name for path in folder.parent.glob("*") if path.is_dir() and path.name != "latest")
        choices = list_choices(suite, suites) or "there is no suite yet"
        raise InputError(f"suite={suite!r} is not in {folder.parent}; allowed: {choices}")
    return folder


def report_path(output_path: Path, suite: str) -> Path:
    """Return the folder of a suite's report, which need not exist. helm-server also serves it."""
    return output_path / "reports" / suite


class Contents(NamedTuple):
    """The groups of a suite's finished runs and published results, and the names of their statistics."""

    groups: set[str]
    statistics: set[str]


def read_contents(folder: Path, benchmarks: Iterable[Benchmark]) -> Contents:
    """Return the groups and statistics for a suite's schema.

    Raises:
        InputError: the suite has no finished run, or a run spec or statistics are damaged.
    """
    contents = Contents(set(), set())
    for run, spec in read_run_specs(folder):
        stats = read_json(run / STATS) if (run / STATS).is_file() else []
        with reading(run / RUN_SPEC):
            contents.groups.update(spec["groups"])
        with reading(run / STATS):
            contents.statistics.update(stat["name"]["name"] for stat in stats)
    for published in read_reference(folder, benchmarks):
        contents.groups.update(published.spec["groups"])
        contents.statistics.update(stat["name"]["name"] for stat in published.stats)
    if not contents.groups:
        raise InputError(f"{folder} has no finished run; run helm-run with this --suite first")
    return contents


def score_tables(folder: Path, benchmarks: Iterable[Benchmark], published: int | None = None) -> list[Table]:
    """Return the leaderboards of each benchmark with runs, with context and without.

    A benchmark with several categories has a table for each length, with a column for each category. A benchmark with
    one category has one table, with a column for each length. Rows are sorted by the first column.

    Args:
        published: number of published models in a table, the best ones; None for all.
    """
    return [
        table for title, data in _leaderboards(folder, benchmarks) for table in _rich_tables(title, data, published)
    ]


def score_rows(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the leaderboards: the title, the model, its score by column, and why it is not comparable."""
    for title, table in _leaderboards(folder, benchmarks):
        columns = [cell["value"] for cell in table["header"]]
        for model, *cells in table["rows"]:
            row = dict(zip(columns[1:], cells, strict=True))
            note = row.pop(NOTES, {}).get("value") or ""
            scores = {name: score for name, cell in row.items() if (score := _score(cell)) is not None}
            yield {"leaderboard": title, "model": model["value"], "scores": scores, "notes": note}


def notes(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """Yield a line for each row of the leaderboards with scores that are not comparable, and one for generated data."""
    for title, table in _leaderboards(folder, benchmarks):
        if table["header"][-1]["value"] == NOTES:
            for row in table["rows"]:
                if note := row[-1].get("value"):
                    yield f"{NOTES}: {title}, {row[0]['value']}: {note}"
    if tasks := dict.fromkeys(_generated_tasks(folder, benchmarks)):
        yield f"Generated data, not official files: {', '.join(tasks)}"


def _generated_tasks(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    for run, spec in read_run_specs(folder):
        if (run / STATS).is_file() and (outcome := find_outcome(spec, read_json(run / STATS), benchmarks)):
            yield from (task.name for task in outcome.tasks if outcome.means.get(("generated_data", task.name)))


def _leaderboards(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the title and the table of scores that helm-summarize wrote, for each benchmark with runs."""
    for benchmark in benchmarks:
        closed = (f"{benchmark.name}_{CLOSED_BOOK}", f"{benchmark.title} closed book")
        for name, title in ((benchmark.name, benchmark.title), closed):
            path = folder / "groups" / f"{name}.json"
            if path.is_file():
                yield title, read_json(path)[0]


def _rich_tables(title: str, table: dict[str, Any], published: int | None) -> Iterator[Table]:
    model, *names = [cell["value"] for cell in table["header"]]
    columns = {place: _split_heading(name) for place, name in enumerate(names, 1) if name not in _NO_SCORES}
    # One table for each length, or a single one if the columns are lengths.
    lengths = (
        dict.fromkeys(label for _, label in columns.values()) if any(each for each, _ in columns.values()) else [""]
    )
    for length in lengths:
        places = [place for place, (_, label) in columns.items() if length in ("", label)]
        rows = [row for row in table["rows"] if any(_score(row[place]) is not None for place in places)]
        rows.sort(key=lambda row: [1.0 if (score := _score(row[place])) is None else -score for place in places])
        rows, left_out = _best_rows(rows, published)
        rich_table = Table(title=f"{title} {length}".strip(), title_justify="left")
        rich_table.add_column(model, overflow="fold")
        for category, label in map(columns.__getitem__, places):
            rich_table.add_column(category or label, overflow="fold")
        for row in rows:
            rich_table.add_row(*(Text(cell_text(row[place])) for place in (0, *places)))
        if left_out:
            rich_table.caption = f"and {left_out} more published models"
        yield rich_table


def _split_heading(heading: str) -> tuple[str, str]:
    """Return the category and the length: `Re-rank 8k` has both, `8k` no category, `AA-LCR by vllm/judge` no length."""
    category, _, last = heading.rpartition(" ")
    with suppress(InputError):
        parse_length(last)
        return category, last
    return heading, ""


def _best_rows(rows: Sequence[list[dict[str, Any]]], published: int | None) -> tuple[list[list[dict[str, Any]]], int]:
    """Return the first published rows and all other rows in their order, and the number of omitted published rows."""
    places = [place for place, row in enumerate(rows) if str(row[0]["value"]).startswith(PUBLISHED)]
    left_out = set(places[published:]) if published is not None else set()
    return [row for place, row in enumerate(rows) if place not in left_out], len(left_out)


def _score(cell: dict[str, Any]) -> float | None:
    score: float | None = cell.get("number", cell.get("value"))
    return score
