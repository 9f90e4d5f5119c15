"""What tests ask about tasks."""

from __future__ import annotations

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.protocol.task import Task


def entry_of(task: Task) -> str:
    """The first run entry that can run a task."""
    return next(
        name
        for benchmark in BENCHMARKS
        for name, category in benchmark.entries.items()
        if task in (*category.tasks, *category.variants)
    )
