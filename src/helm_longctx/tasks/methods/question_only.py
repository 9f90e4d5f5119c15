"""The method `question_only`: the question alone, by a prompt that mentions no text. It is a floor against leakage."""

from __future__ import annotations

from dataclasses import replace

from helm_longctx.tasks.methods.method import Method
from helm_longctx.tasks.task import Example, Settings, Task


def ask(task: Task, settings: Settings, example: Example) -> Example:
    """Return the example with the benchmark's prompt for the question alone, which has no depth."""
    return replace(example, template=task.question_only, depth=None)


METHOD = Method(
    "question_only",
    "Asks the question alone, without context, demonstrations and any mention of a text. Scores are floors.",
    ask,
    fits=lambda task: task.question_only is not None,
    needs="a prompt for the question alone",
    is_floor=True,
)
