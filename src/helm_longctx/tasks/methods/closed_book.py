"""The method `closed_book`: the task's prompt without the context. Scores show what a model answers from memory."""

from __future__ import annotations

from dataclasses import replace

from helm_longctx.tasks.methods.method import Method
from helm_longctx.tasks.task import Example, Settings, Task
from helm_longctx.tasks.template import CONTEXT


def ask(task: Task, settings: Settings, example: Example) -> Example:
    """Return the example with an empty context."""
    return replace(example, fields={**example.fields, CONTEXT: ""})


METHOD = Method("closed_book", "Asks with the task's prompt, whose context is left out.", ask)
