"""Finds the run entry with the same questions as another program's task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from helm_longctx.errors import InputError, shorten, suggest
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry, parse_entry
from helm_longctx.tasks.task import Task

_LENGTH = re.compile(r"(.+)_(\d+(?:\.\d+)?[km]?)")
"""A task's name and a length, as in the names of run groups: `helmet_nq_8k`."""


def with_length(entry: str, length: int | None) -> str:
    """Return a run entry with a length, if it names none and one is known."""
    if length is None or re.search(r"[:,]length=", entry):
        return entry
    return f"{entry}{',' if ':' in entry else ':'}length={length}"


def resolve_entry(benchmarks: Iterable[Benchmark], text: str) -> Entry:
    """Check a run entry of one task.

    Raises:
        InputError: the entry is wrong, or names several tasks.
    """
    entry = parse_entry(benchmarks, text)
    if len(entry.tasks) == 1:
        return entry
    names = ", ".join(task.argument for task in entry.tasks)
    raise InputError(f"{entry.name}: {entry.benchmark.task_argument} is missing; choose from {names}")


def find_entry(benchmarks: Iterable[Benchmark], name: str, length: int | None = None) -> str:
    """Return the run entry of a task that another program calls `name`: `helmet_nq_8k`, `ruler_vt`, `nq`.

    Args:
        length: the length in the rows; None if they have none.

    Raises:
        InputError: no task has this name, or several have it.
    """
    benchmarks = tuple(benchmarks)
    entries = list(dict.fromkeys(_entries(benchmarks, name, length)))
    if not entries and (match := _LENGTH.fullmatch(name)):
        entries = list(dict.fromkeys(_entries(benchmarks, match[1], match[2])))
    if len(entries) == 1:
        return entries[0]
    if entries:
        raise InputError(f"task {shorten(name)} has several run entries; give --entry with {' or '.join(entries)}")
    names = {each for benchmark in benchmarks for task in benchmark.tasks for each in _names(benchmark, task)}
    raise InputError(
        f"task {shorten(name)} is not known; give its run entry with --entry{suggest(name, sorted(names))}"
    )


def _entries(benchmarks: Iterable[Benchmark], name: str, length: object) -> Iterator[str]:
    for benchmark in benchmarks:
        for task in benchmark.tasks:
            if name in _names(benchmark, task):
                values = {benchmark.task_argument: task.argument}
                values |= {"length": str(length)} if length is not None and benchmark.axis else {}
                yield f"{category_of(benchmark, task)}:" + ",".join(f"{key}={each}" for key, each in values.items())


def _names(benchmark: Benchmark, task: Task) -> set[str]:
    return {task.name, f"{benchmark.name}_{task.name}"}


def category_of(benchmark: Benchmark, task: Task) -> str:
    """Return the name of the first run entry that has a task."""
    entries = benchmark.entries.items()
    return next(name for name, category in entries if task in (*category.tasks, *category.variants))
