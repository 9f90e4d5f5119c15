"""The record of a method: a way to ask the questions of tasks other than the official prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from helm_longctx.tasks.task import Example, Settings, Task

Ask = Callable[[Task, Settings, Example], Example]
"""Function that returns the example that is sent instead of an example."""


@dataclass(frozen=True)
class Method:
    """A method.

    Args:
        name: the value of the run-entry argument `method`.
        about: what the method does, in a sentence.
        ask: makes the example that is sent. It can change the fields, among them `context`, or give the example
            messages, a second request (`follow_up`) and an output budget (`max_tokens`). Id, references, record and
            group stay. The example has no messages of its own, and its fields have a context and a question.
        arguments: the default of each run-entry argument of the method, a whole number from 1. Methods that share a
            name share the argument.
        first_tokens: returns the output budget of the first of two requests; 0 for methods with one request.
        fits: whether the method can ask a task whose template has a context and a question.
        needs: what such a task must have in addition, for errors; empty if `fits` is always true.
        extra: the extra of this package that the method needs; empty for none.
        is_floor: whether scores need no understanding of the context, so that models with this method are not ranked.
    """

    name: str
    about: str
    ask: Ask
    arguments: Mapping[str, int] = field(default_factory=dict)
    first_tokens: Callable[[Task], int] = lambda task: 0
    fits: Callable[[Task], bool] = lambda task: True
    needs: str = ""
    extra: str = ""
    is_floor: bool = False

    def can_ask(self, task: Task) -> bool:
        """Whether the method can ask a task."""
        return task.has_question and self.fits(task)
