"""`list` and `confs`: print the task table, and write it as run-entry files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.shared import OutputPath, print_table
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.metric_names import headline_text
from helm_longctx.protocol.task import Task
from helm_longctx.report.confs import conf_files
from helm_longctx.sources.root import DataRoot


def list_tasks(
    length: Annotated[str, typer.Option(help="Length that the column data is about.")] = "128k",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """List the tasks with run entry, lengths, metric and output budget, and say whether their data is present."""
    root = DataRoot.find(output_path)
    tokens = parse_length(length, "list")
    rows = [
        _row(entry, task, tokens, root)
        for benchmark in BENCHMARKS
        for entry, category in benchmark.entries.items()
        for task in (*category.tasks, *category.variants)
    ]
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        return
    table = Table(title=f"Data at {length}: {root.path}{'' if root.mirror else ' (cache)'}", title_justify="left")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    print_table(table)


def _row(entry: str, task: Task, length: int, root: DataRoot) -> dict[str, Any]:
    labels = [length_label(tokens) for tokens in sorted(task.sizes)]
    return {
        "entry": entry,
        "task": task.argument,
        "lengths": f"{labels[0]}-{labels[-1]}" if labels else "none",
        "metric": headline_text(task),
        "max_tokens": _range(task.max_tokens),
        "samples": _range(task.num_samples),
        "data": _data(task, length, root),
    }


def _range(number: int | Mapping[int, int]) -> int | str:
    """Return a number; the smallest and the largest if it depends on the length."""
    return number if isinstance(number, int) else f"{min(number.values())}-{max(number.values())}"


def _data(task: Task, length: int, root: DataRoot) -> str:
    if not task.exists_at(length):
        return "none at this length"
    paths = task.paths(length)
    if paths and all(map(root.has, paths)):
        return "here"
    if task.any_length and not task.sources(length):
        return "generated"
    return "missing" if root.mirror else "fetched on first use"


def confs(folder: Annotated[Path, typer.Argument(file_okay=False, help="Folder to write to.")]) -> None:
    """Write files of run entries for `helm-run --conf-paths`, one for each benchmark and length."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in conf_files(BENCHMARKS).items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)
