"""A suite's runs: their groups, and the tables that helm-summarize made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from rich.table import Table

from helm_longctx.core.entry import CLOSED_BOOK
from helm_longctx.core.task import MAIN_METRIC, Benchmark
from helm_longctx.errors import InputError


def suite_path(output_path: Path, suite: str) -> Path:
    """`<output path>/runs/<suite>`, whether it is there or not.

    Raises:
        InputError: the name would lead elsewhere.
    """
    if suite in ("", ".", "..") or Path(suite).name != suite:
        raise InputError(f"suite={suite!r} is not allowed; allowed: the name of a folder")
    return output_path / "runs" / suite


def suite_folder(output_path: Path, suite: str) -> Path:
    """The folder of a suite that is there.

    Raises:
        InputError: there is no such suite.
    """
    folder = suite_path(output_path, suite)
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
    """For each benchmark with runs, its leaderboards: models by category, a table a length, with context and without;
    of a benchmark with one category, models by length."""
    tables: list[Table] = []
    for benchmark in benchmarks:
        closed = (f"{benchmark.name}_{CLOSED_BOOK}", f"{benchmark.title} closed book")
        for name, title in ((benchmark.name, benchmark.title), closed):
            path = folder / "groups" / f"{name}.json"
            if path.is_file():
                tables += _rich_tables(title, orjson.loads(path.read_bytes())[0])
    return tables


def unscored(folder: Path, benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """For each run of a whole category of which a task has no score, a line that says so."""
    entries = {name: (b.task_argument, category) for b in benchmarks for name, category in b.entries.items()}
    for path in sorted(folder.glob("*/stats.json")):
        arguments = orjson.loads((path.parent / "run_spec.json").read_bytes())["scenario_spec"].get("args", {})
        task_argument, category = entries.get(arguments.get("entry"), (None, None))
        if category is None or task_argument in arguments or "revision" not in arguments:
            continue
        names = [stat["name"] for stat in orjson.loads(path.read_bytes())]
        scored = {name.get("sub_split") for name in names if name["name"] == MAIN_METRIC}
        if scored and (lacking := [task.name for task in category.tasks if task.name not in scored]):
            yield f"{path.parent.name}: the mean is without {', '.join(lacking)}, which has no score"


def _rich_tables(title: str, table: dict[str, Any]) -> Iterator[Table]:
    model, *names = [column["value"].removesuffix(" - Score") for column in table["header"]]
    columns = [name.rpartition(" ") for name in names]  # `Re-rank 8k`, or of one category `8k`
    lengths = dict.fromkeys(label for _, _, label in columns) if any(category for category, *_ in columns) else [""]
    for length in lengths:
        places = [place for place, (_, _, label) in enumerate(columns, 1) if length in ("", label)]
        shown = Table(title=f"{title} {length}".strip(), title_justify="left")
        shown.add_column(model, overflow="fold")
        for category, _, label in (columns[place - 1] for place in places):
            shown.add_column(category or label, overflow="fold")
        for row in table["rows"]:
            shown.add_row(*(_cell(row[place].get("value")) for place in (0, *places)))
        yield shown


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)
