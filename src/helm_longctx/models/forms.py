"""Which task's template a prompt was made from, and what stands in its places."""

from __future__ import annotations

from functools import cache

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.protocol.task import Task


def recognise(prompt: str) -> tuple[Task, dict[str, str]] | None:
    """The first task whose template gives this prompt, and the template's fields; None if none does."""
    for task in _distinct():
        fields = task.template.parse(prompt)
        if fields is not None:
            return task, fields
    return None


@cache
def _distinct() -> tuple[Task, ...]:
    """One task for each template; those that begin with a literal first, as they are told apart at once."""
    tasks = {task.template: task for benchmark in BENCHMARKS for task in reversed(benchmark.tasks)}
    return tuple(sorted(tasks.values(), key=lambda task: task.template.user.startswith("{")))
