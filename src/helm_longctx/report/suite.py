"""A suite's runs: their groups, and the tables that helm-summarize made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from rich.table import Table

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.protocol.entry import CLOSED_BOOK
from helm_longctx.protocol.task import Benchmark
from helm_longctx.report.marks import NOTES, cell_text

_LONGEST_NAME = 255
"""Of a folder, in bytes, on usual file systems."""

_NAMES = f"the name of a folder, of at most {_LONGEST_NAME} bytes"


def suite_path(output_path: Path, suite: str) -> Path:
    """`<output path>/runs/<suite>`, whether it is there or not.

    Raises:
        InputError: the name would lead elsewhere.
    """
    if suite in ("", ".", "..") or Path(suite).name != suite or len(suite.encode()) > _LONGEST_NAME:
        raise InputError(f"suite={shorten(suite)} is not allowed; allowed: {_NAMES}")
    return output_path / "runs" / suite


def suite_folder(output_path: Path, suite: str) -> Path:
    """The folder of a suite that is there.

    Raises:
        InputError: there is no such suite.
    """
    folder = suite_path(output_path, suite)
    if not folder.is_dir():
        found = sorted(path.name for path in folder.parent.glob("*") if path.is_dir() and path.name != "latest")
        choices = list_choices(suite, found) or "none is there yet"
        raise InputError(f"suite={suite!r} is not in {folder.parent}; allowed: {choices}")
    return folder


def run_groups(folder: Path) -> set[str]:
    """The groups that the suite's finished runs belong to.

    Raises:
        InputError: no run of the suite has finished, or a run spec cannot be read.
    """
    groups: set[str] = set()
    for path in folder.glob("*/run_spec.json"):
        try:
            groups.update(orjson.loads(path.read_bytes())["groups"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a HELM run spec; make that run again") from error
    if not groups:
        raise InputError(f"{folder} has no finished run; run helm-run with this --suite first")
    return groups


def score_tables(folder: Path, benchmarks: Iterable[Benchmark]) -> list[Table]:
    """For each benchmark with runs, its leaderboards: models by category, a table a length, with context and without;
    of a benchmark with one category, models by length."""
    return [table for title, found in _leaderboards(folder, benchmarks) for table in _rich_tables(title, found)]


def notes(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """For each row of the leaderboards with scores that are not comparable, a line that says why."""
    for title, table in _leaderboards(folder, benchmarks):
        if table["header"][-1]["value"] == NOTES:
            for row in table["rows"]:
                if note := row[-1].get("value"):
                    yield f"{NOTES}: {title}, {row[0]['value']}: {note}"


def _leaderboards(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Title and table of scores of each benchmark with runs, as helm-summarize wrote them."""
    for benchmark in benchmarks:
        closed = (f"{benchmark.name}_{CLOSED_BOOK}", f"{benchmark.title} closed book")
        for name, title in ((benchmark.name, benchmark.title), closed):
            path = folder / "groups" / f"{name}.json"
            if path.is_file():
                yield title, orjson.loads(path.read_bytes())[0]


def _rich_tables(title: str, table: dict[str, Any]) -> Iterator[Table]:
    model, *names = [cell["value"].removesuffix(" - Score") for cell in table["header"] if cell["value"] != NOTES]
    columns = [name.rpartition(" ") for name in names]  # `Re-rank 8k`, or of one category `8k`
    lengths = dict.fromkeys(label for _, _, label in columns) if any(category for category, *_ in columns) else [""]
    for length in lengths:
        places = [place for place, (_, _, label) in enumerate(columns, 1) if length in ("", label)]
        shown = Table(title=f"{title} {length}".strip(), title_justify="left")
        shown.add_column(model, overflow="fold")
        for category, _, label in (columns[place - 1] for place in places):
            shown.add_column(category or label, overflow="fold")
        for row in table["rows"]:
            shown.add_row(*(cell_text(row[place]) for place in (0, *places)))
        yield shown
