"""A suite's runs: their groups, and the tables that helm-summarize made of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import orjson
from rich.table import Table

from helm_longctx.core.entry import CLOSED_BOOK
from helm_longctx.core.task import Benchmark
from helm_longctx.errors import InputError


def suite_folder(output_path: Path, suite: str) -> Path:
    """`<output path>/runs/<suite>`.

    Raises:
        InputError: there is no such suite.
    """
    folder = output_path / "runs" / suite
    if not folder.is_dir():
        found = sorted(path.name for path in folder.parent.glob("*") if path.is_dir() and path.name != "latest")
        raise InputError(
            f"suite={suite!r} is not in {folder.parent}; allowed: {', '.join(found) or 'none is there yet'}"
        )
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
    """For each benchmark with runs, its leaderboards: models by category and length, with context and without."""
    tables = []
    for benchmark in benchmarks:
        closed = (f"{benchmark.name}_{CLOSED_BOOK}", f"{benchmark.title} closed book")
        for name, title in ((benchmark.name, benchmark.title), closed):
            path = folder / "groups" / f"{name}.json"
            if path.is_file():
                tables.append(_rich_table(title, orjson.loads(path.read_bytes())[0]))
    return tables


def _rich_table(title: str, table: dict) -> Table:  # type: ignore[type-arg]  # HELM's JSON
    shown = Table(title=title, title_justify="left")
    for column in table["header"]:
        shown.add_column(column["value"].removesuffix(" - Score"), overflow="fold")
    for row in table["rows"]:
        shown.add_row(*(_cell(cell.get("value")) for cell in row))
    return shown


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)
