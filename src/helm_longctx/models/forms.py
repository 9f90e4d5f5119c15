"""Which task a prompt was made from, and what stands in the places of its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.protocol.baseline import Baseline
from helm_longctx.protocol.prompt import Message
from helm_longctx.protocol.template import NO_TEMPLATE, Template


@dataclass(frozen=True)
class Recognition:
    """What a prompt turns out to be.

    Args:
        template: the one it was made from; None if its task has none.
        fields: what stands in the template's places.
        answer: of a task without a template, what its benchmark's strategy found.
    """

    baseline: Baseline
    template: Template | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


def recognise(prompt: str) -> Recognition | None:
    """The first task whose template gives this prompt, else the first whose strategy knows it; None if none does."""
    for template, baseline in _templates():
        fields = template.parse(prompt)
        if fields is not None:
            return Recognition(baseline, template, fields)
    return recognise_conversation([{"role": "user", "content": prompt}])


def recognise_conversation(messages: Sequence[Message]) -> Recognition | None:
    """The first task without a template whose strategy knows the conversation; None if none does."""
    for benchmark in BENCHMARKS:
        for baseline in benchmark.baselines.values():
            answer = None if isinstance(baseline.kind, str) else baseline.kind(messages)
            if answer is not None:
                return Recognition(baseline, answer=answer)
    return None


@cache
def _templates() -> tuple[tuple[Template, Baseline], ...]:
    """Each template once; those that begin with a literal first, as they are told apart at once."""
    baselines = {
        task.template: benchmark.baselines[task.name]
        for benchmark in BENCHMARKS
        for task in reversed(benchmark.tasks)
        if task.template is not NO_TEMPLATE and task.name in benchmark.baselines
    }
    return tuple(sorted(baselines.items(), key=lambda item: item[0].user.startswith("{")))
