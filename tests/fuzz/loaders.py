"""Mutated data files: each gives examples that can be scored, or one line of error."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from helm.common.general import asdict_without_nones

import helm_longctx.plugin  # noqa: F401  # scenarios
from helm_longctx.benchmarks.helmet.data import books
from helm_longctx.benchmarks.mrcr import tasks as mrcr
from helm_longctx.errors import InputError
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Task
from tests.fuzz import batches
from tests.fuzz.cases import Kind, check_line
from tests.fuzz.mutate import dumped, mutated, mutated_bytes
from tests.support.fabricate import build_mirror
from tests.support.fabricated import fabricated
from tests.support.tasks import entry_of

BUILDERS: tuple[Callable[[Path], object], ...] = (
    build_mirror,
    *fabricated("build_{name}").values(),
)
"""What fabricates the data of all benchmarks."""
ROWS = 12
LONGEST_TEXT = 3000
SMALL_FILE = 100_000
"""Rows, characters, and bytes of a file that is small as it is."""
TASKS = {
    task.name: (benchmark, task)
    # Of tasks with one name, as HELMET's new ones have, the first counts: it is the published one.
    for benchmark in reversed(BENCHMARKS)
    for task in benchmark.tasks
    # Generated tasks read no file, or few, which are mutated in tests of their own.
    if "count_with" not in task.arguments
    and task.all_sources(min(task.sizes, default=None))
}


@cache
def small_mirror() -> Path:
    """Return the fabricated mirror with few rows and short texts, which is made once and removed when the process ends."""
    kept = tempfile.TemporaryDirectory(prefix="fuzz-mirror-")
    _kept.append(kept)
    with tempfile.TemporaryDirectory() as whole:
        for build in BUILDERS:
            build(Path(whole))
        for _, task in TASKS.values():
            for path in _paths(task):
                _write_small(Path(whole) / path, Path(kept.name) / path)
        shutil.copytree(Path(whole) / WEB_PAGES, Path(kept.name) / WEB_PAGES)
    return Path(kept.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def length_of(task: Task) -> int | None:
    """Return 8k or, if the task lacks it, its shortest length; None if the task has no lengths."""
    return 8192 if 8192 in task.sizes else min(task.sizes, default=None)


def fabricated_files(task: Task) -> list[str]:
    """Return the files that the task, with its judge, reads in the fabricated mirror."""
    return [path for path in _paths(task) if (small_mirror() / path).is_file()]


def _paths(task: Task) -> list[str]:
    return [
        path for source in task.all_sources(length_of(task)) for path in source.paths
    ]


def _write_small(source: Path, target: Path) -> None:
    if not source.is_file() or target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".jsonl" and source.stat().st_size > SMALL_FILE:
        with source.open(encoding="utf-8") as lines:
            rows = [
                json.loads(line) for line, _ in zip(lines, range(ROWS), strict=False)
            ]
        target.write_text(
            "".join(json.dumps(_short(row)) + "\n" for row in rows), encoding="utf-8"
        )
    elif source.parent.name == "alce":
        target.write_text(
            json.dumps(_short(json.loads(source.read_bytes())[:ROWS])), encoding="utf-8"
        )
    else:
        shutil.copyfile(source, target)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value[:ROWS]]
    return value[:LONGEST_TEXT] if isinstance(value, str) else value


WEB_PAGES = "longproc/html_to_tsv/webpage"
"""Files that no source names: a file of the source names them."""


def _loader(task: Task) -> str:
    """Return the name of the function that loads a task."""
    load = task.load.func if isinstance(task.load, partial) else task.load
    return f"{load.__module__.rpartition('.')[-1]}.{load.__name__}"


LOADERS = {
    name: [row for row in TASKS.values() if _loader(row[1]) == name]
    for name in dict.fromkeys(_loader(task) for _, task in TASKS.values())
}


def run(loader: str, rng: random.Random) -> None:
    """Load a task from a mirror of which one file is mutated, or collect a batch whose results are mutated."""
    room, _, name = loader.partition(".")
    if room == "batches":
        batches.run(name, rng)
    else:
        _run_loader(loader, rng)


def _run_loader(loader: str, rng: random.Random) -> None:
    benchmark, task = rng.choice(LOADERS[loader])
    mirror = small_mirror()
    paths = fabricated_files(task)
    changed = rng.choice(paths)
    with tempfile.TemporaryDirectory(prefix="fuzz-case-") as folder:
        for path in paths:
            target = Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if path == changed:
                target.write_bytes(_mutated_file(mirror / path, rng))
            else:
                target.symlink_to(mirror / path)
        if not (pages := Path(folder) / WEB_PAGES).parent.is_dir():
            pages.parent.mkdir(parents=True)
        pages.symlink_to(mirror / WEB_PAGES)
        with (
            _short_books(),
            _counted_in_bytes(),
            mock.patch.dict(os.environ, {MIRROR: folder}),
        ):
            _load(benchmark, task)


def _mutated_file(path: Path, rng: random.Random) -> bytes:
    data = path.read_bytes()
    if rng.random() < 0.15 or path.suffix in (".py", ".csv", ".txt", ".yaml", ".zip"):
        return mutated_bytes(data, rng)
    # Files of JSON lines can be named `.json`, as LooGLE's.
    if path.suffix != ".jsonl" and not all(
        line.startswith(b"{") for line in data.splitlines()
    ):
        return dumped(mutated(json.loads(data), rng), rng)
    rows = [json.loads(line) for line in data.splitlines()]
    for _ in range(rng.choice((1, 1, 2, len(rows)))):
        position = rng.randrange(len(rows))
        rows[position] = mutated(rows[position], rng)
    return b"".join(dumped(row, rng) + b"\n" for row in rows)


@contextmanager
def _short_books() -> Iterator[None]:
    """Let some lines be enough for a book until the block ends."""
    with (
        mock.patch.object(books, "_LONG", 100),
        mock.patch.object(books, "_LONGEST", 200),
    ):
        yield


def _counted_in_bytes() -> AbstractContextManager[object]:
    """Count the tokens of conversations in bytes, without tiktoken's file, until the block ends."""

    def count(text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass"))

    return mock.patch.object(mrcr, "o200k_counter", return_value=count)


def _load(benchmark: Benchmark, task: Task) -> None:
    arguments = {
        benchmark.task_argument: task.argument,
        "length": length_of(task),
        "num_samples": 5,
    }
    arguments = {key: value for key, value in arguments.items() if value is not None}
    try:
        scenario = LongContextScenario(entry_of(task), benchmark.revision, **arguments)
        instances = list(scenario.iter_instances("benchmark_output/scenarios/x"))
    except InputError as error:
        check_line(error)
        return
    assert instances, "there are neither examples nor an error"
    for instance in instances:
        json.dumps(asdict_without_nones(instance), allow_nan=False)
        references = [reference.output.text for reference in instance.references]
        record = {
            **(instance.extra_data or {})["record"],
            "prediction": "Answer: 1 > 2 [1].",
            "references": references,
        }
        task.scores(record)


BATCHES = ("batches.openai", "batches.anthropic")
KIND = Kind("loaders", (*LOADERS, *BATCHES), 1000, run)
