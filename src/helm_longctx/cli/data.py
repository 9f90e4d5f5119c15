"""`fetch`: get data before a run needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.records import EntryArgument, OutputPath
from helm_longctx.core.entry import parse_entry
from helm_longctx.sources import hub
from helm_longctx.sources.root import DataRoot


def fetch(
    entry: EntryArgument,
    to: Annotated[Path | None, typer.Option(help="A mirror folder to fill, instead of the cache.")] = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Download what an entry needs, check it, and keep it in the cache or in a mirror folder."""
    checked = parse_entry(BENCHMARKS, entry)
    root = DataRoot(to, mirror=False) if to else DataRoot.find(output_path)
    for dataset in {task.hub.folder: task.hub for task in checked.tasks if task.hub}.values():
        print(hub.ensure(dataset, root, f"helm-longctx fetch {entry} --to {root.path}"))
    for task in checked.tasks:
        for path in task.data_paths(checked.settings.length) if not task.hub else []:
            note = "is here" if root.has(path) else "is not here: examples of its form are generated"
            print(f"{root / path} {note}")
