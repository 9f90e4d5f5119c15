"""Compares the first rows of data on the hub with what the loaders of tasks expect."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import orjson

from helm_longctx.data.download import Source, explain_failure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, ShapeError
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.loading import load_examples


class Shape(NamedTuple):
    """How a source's first rows compare with a loader.

    Args:
        entry: the run entry.
        source: the source.
        columns: the columns that were found, each with its type.
        result: "same"; "differs"; "not read" for a refused request, or if no row can be read by itself; "one row" if
            the loader needs more than the row that was read.
        why: what differs, or why it was not read.
    """

    entry: str
    source: str
    columns: str
    result: Literal["same", "differs", "not read", "one row"]
    why: str = ""


def check_shapes(entries: Iterable[Entry]) -> Iterator[Shape]:
    """Read a row of each source of run entries over the network, and give it to the loaders."""
    seen: set[tuple[str, ...]] = set()
    for entry in entries:
        for task in entry.tasks:
            sources = [*task.all_sources(entry.settings.length)]
            key = (task.name, *(path for source in sources for path in source.paths))
            if key in seen or not sources:
                continue
            seen.add(key)
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                shapes = [_peek(f"{entry.name}:{task.name}", source, root) for source in sources]
                if all(shape.result == "same" for shape in shapes):
                    result: Literal["same", "differs", "one row"] = "same"
                    why = ""
                    try:
                        next(load_examples(task, entry.settings, DataRoot(root, mirror=True)), None)
                    except InputError as error:
                        result, why = "differs" if isinstance(error, ShapeError) else "one row", str(error)
                    shapes = [shape._replace(result=result, why=why.replace(f"{root}/", "")) for shape in shapes]
            yield from shapes


def _peek(entry: str, source: Source, root: Path) -> Shape:
    """Write the first rows of a source into a data root."""
    shape = Shape(entry, source.label, "", "not read", "no row of it can be read without the whole file")
    try:
        files = source.first_rows()
    except ShapeError as error:
        return shape._replace(result="differs", why=str(error))
    except Exception as error:  # of huggingface_hub, requests and pyarrow
        return shape._replace(why=explain_failure(error, root, source.refusal, source.remedy))
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    rows = [orjson.loads(content) for name, content in files.items() if not name.endswith("features.json")]
    columns = {
        name: type(value).__name__
        for each in rows
        for name, value in (each[0] if isinstance(each, list) else each).items()
    }
    text = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return shape._replace(columns=text, result="same", why="") if files else shape
