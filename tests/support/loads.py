"""Counts how often the examples of tasks are read or generated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from helm_longctx.helm import scenario
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Task


@contextmanager
def count_loads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield a list that gets the name of a task each time its examples are loaded for a run."""
    names: list[str] = []

    def load(task: Task, *arguments: Any) -> Iterator[Example]:
        names.append(task.name)
        return load_examples(task, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(scenario, "load_examples", load)
        yield names
