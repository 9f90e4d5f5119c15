"""The method `cot`: reasoning before the answer, by the prompts of the benchmark."""

from __future__ import annotations

from helm_longctx.tasks.methods.method import Method
from helm_longctx.tasks.task import Example, Settings, Task


def ask(task: Task, settings: Settings, example: Example) -> Example:
    """Return the example with the benchmark's own prompts for reasoning."""
    assert task.reasoning  # `fits` checks it
    return task.reasoning.ask(example)


METHOD = Method(
    "cot",
    "Asks for reasoning before the answer, by the prompts of the benchmark.",
    ask,
    first_tokens=lambda task: task.reasoning.max_tokens if task.reasoning else 0,
    fits=lambda task: task.reasoning is not None,
    needs="prompts for reasoning",
)
