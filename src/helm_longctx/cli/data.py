"""`fetch`: download data before a run needs it."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.config.shared import OutputPath
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError
from helm_longctx.tasks.data_cards import Shape, check_shapes
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS, expand_entry
from helm_longctx.tasks.validation import list_entries

Entries = Annotated[
    list[str] | None,
    typer.Argument(help="Run entries without a model, e.g. helmet_rag:length=8k. [default with --check: all]"),
]


def fetch(
    entries: Entries = None,
    to: Annotated[
        Path | None, typer.Option(file_okay=False, help="Write to this mirror folder instead of the cache.")
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Read one row of each file on the hub, and compare it with the loader.")
    ] = False,
) -> None:
    """Download and check the data that entries need, and store it in the cache or in a mirror folder.

    Name all entries in one command: files that are in the same archive are then read in one pass. With --check nothing
    is stored, and the exit status is 1 if files, columns or types differ from what the loaders expect.
    """
    if not entries and not check:
        raise InputError("fetch: ENTRY is missing; give run entries (`helm-longctx list` names them), or --check")
    names = entries or []
    checked = [parse_entry(BENCHMARKS, each) for entry in names for each in expand_entry(entry)]
    if check:
        shapes = [*check_shapes(checked or [each for benchmark in BENCHMARKS for each in list_entries(benchmark)])]
        print_table(text_table("Data on the hub", Shape._fields, shapes))
        counts = Counter(shape.result for shape in shapes)
        print("; ".join(f"{result}: {count}" for result, count in counts.items()))
        if counts["differs"]:
            raise typer.Exit(1)
        return
    # `mirror=False`, because nothing is ever downloaded into a mirror.
    root = DataRoot(to, mirror=False) if to else DataRoot.find(output_path)
    # Entries can share sources.
    sources = {
        tuple(source.paths): source
        for entry in checked
        for task in entry.tasks
        for source in task.all_sources(entry.settings.length)
    }
    command = f"helm-longctx fetch {' '.join(names)}" + (f" --to {root.path}" if root.mirror else "")
    ensure(sources.values(), root, command)
    for path in (path for paths in sources for path in paths):
        print(root / path)
    for entry in checked:
        at = f" at {entry.label}" if entry.label else ""
        for task in entry.tasks:
            if not task.paths(entry.settings.length):
                print(f"{task.name}{at} has no official data, so similar examples will be generated")
