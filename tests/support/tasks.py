"""Answers questions of tests about tasks."""

from __future__ import annotations

from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS, FOLDER, benchmarks_in, read_folders
from helm_longctx.tasks.task import Example, Task


def entry_of(task: Task) -> str:
    """Return the first run entry that can run a task."""
    return next(
        name
        for benchmark in BENCHMARKS
        for name, category in benchmark.entries.items()
        if task in (*category.tasks, *category.variants)
    )


def page_of(benchmark: Benchmark) -> str:
    """Return the path of the README of a benchmark's folder, relative to `src`."""
    folder = next(
        folder
        for name, folder in read_folders().items()
        if any(named_benchmark is benchmark for named_benchmark in benchmarks_in(name))
    )
    return (folder / "README.md").relative_to(FOLDER.parents[1]).as_posix()


def load(entry: str, root: DataRoot) -> list[Example]:
    """Return the examples of an entry with one task, as its loader makes them."""
    parsed = parse_entry(BENCHMARKS, entry)
    (task,) = parsed.tasks
    return list(task.load(task, parsed.settings, root))


def load_asked(entry: str, root: DataRoot) -> list[Example]:
    """Return the examples of an entry with one task, as its method asks them."""
    parsed = parse_entry(BENCHMARKS, entry)
    (task,) = parsed.tasks
    return list(load_examples(task, parsed.settings, root))
