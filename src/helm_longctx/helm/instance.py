"""From an example to a HELM instance, and what the adapter and the metric read back from it."""

from __future__ import annotations

from typing import Any

from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

from helm_longctx.protocol.task import Example, Settings, Task


def to_instance(task: Task, settings: Settings, example: Example, run_max_tokens: int) -> Instance:
    """One evaluation instance: its input is the chat form; `extra_data` says how the completion form differs.

    Args:
        run_max_tokens: the run's output budget, which is the adapter spec's.
    """
    fields = example.fields
    extra: dict[str, Any] = {
        "length": settings.length,
        "question": next((fields[name] for name in ("question", "query", "input") if name in fields), None),
        "depth": example.depth,
        "source": example.source,
        "input_tokens": example.input_tokens,
        "counter": example.counter,
        "context_span": list(task.template.context_span(fields)),
        "separator": task.template.separator,
        "answer_prefix": task.template.answer_prefix(fields),
        "stop": list(stop_sequences(task, settings)),
        "system": task.variant(settings).system,
        "max_tokens": task.budget(settings),
        "run_max_tokens": run_max_tokens,
        "thinking_tokens": settings.thinking_tokens or None,
        "record": dict(example.record),
        "cut": task.cut,
        "chat": task.chat,
    }
    return Instance(
        input=Input(text=task.template.user_turn(fields)),
        references=[Reference(Output(text=text), tags=[CORRECT_TAG]) for text in example.references],
        split=TEST_SPLIT,
        sub_split=task.name,
        id=example.id,
        extra_data={key: value for key, value in extra.items() if value is not None},
    )


def stop_sequences(task: Task, settings: Settings) -> tuple[str, ...]:
    """Where a completion stops; a model that thinks stops nowhere (HELMET eval.py:74)."""
    return () if settings.thinking_tokens else task.variant(settings).stop
