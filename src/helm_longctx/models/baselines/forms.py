"""Recognises the task of a prompt, and recovers the fields of its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Baseline
from helm_longctx.tasks.template import NO_TEMPLATE, Template


@dataclass(frozen=True)
class Recognition:
    """The task that a prompt was recognised as.

    Args:
        baseline: how the baselines answer the task.
        template: the task's template; None if the task has none.
        fields: values of the template's fields.
        answer: for a task without a template, the answer of its strategy.
    """

    baseline: Baseline
    template: Template | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


def recognise(prompt: str) -> Recognition | None:
    """Recognise a prompt by the first template that fits it, or else by a strategy. Return None if none fits."""
    for template, baseline in _templates():
        fields = template.parse(prompt)
        if fields is not None:
            return Recognition(baseline, template, fields)
    return recognise_conversation([{"role": "user", "content": prompt}])


def recognise_conversation(messages: Sequence[Message]) -> Recognition | None:
    """Recognise a conversation by the first strategy that answers it. Return None if none does."""
    for benchmark in BENCHMARKS:
        # Tasks can share a strategy. A dictionary has each of them once.
        for baseline in dict.fromkeys(task.baseline for task in benchmark.tasks if task.baseline):
            answer = None if isinstance(baseline.kind, str) else baseline.kind(messages)
            if answer is not None:
                return Recognition(baseline, answer=answer)
    return None


@cache
def _templates() -> tuple[tuple[Template, Baseline], ...]:
    """Return all templates whose tasks have no strategy of their own, each once.

    Templates that start with a literal come first, because they are checked fastest.
    """
    baselines = {
        task.template: task.baseline
        for benchmark in BENCHMARKS
        # Tasks can share a template. The order is reversed, so that the dictionary keeps the first of these tasks.
        for task in reversed(benchmark.tasks)
        if task.template is not NO_TEMPLATE and task.baseline and isinstance(task.baseline.kind, str)
    }
    return tuple(sorted(baselines.items(), key=lambda item: item[0].user.startswith("{")))
