"""Answers questions of tests about tasks."""

from __future__ import annotations

from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example, Task


def entry_of(task: Task) -> str:
    """Return the first run entry that can run a task."""
    return next(
        name
        for benchmark in BENCHMARKS
        for name, category in benchmark.entries.items()
        if task in (*category.tasks, *category.variants)
    )


def load(entry: str, root: DataRoot) -> list[Example]:
    parsed = parse_entry(BENCHMARKS, entry)
    (task,) = parsed.tasks
    return list(task.load(task, parsed.settings, root))
