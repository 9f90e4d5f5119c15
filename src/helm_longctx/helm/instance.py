"""Makes HELM instances of examples."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.prompt import FollowUp, Prompt
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import PLAIN, Example, Settings, Task


def to_instance(
    benchmark: Benchmark, task: Task, settings: Settings, example: Example, run_max_tokens: int
) -> Instance:
    """Return the instance of an example. Its input is the prompt as a chat, and its `extra_data` is a `Sample`.

    Args:
        run_max_tokens: the run's output budget, which the adapter spec also has.
    """
    prompt, is_plain = task.prompt(example, task.variant(settings).system), settings.method == PLAIN
    sample = Sample(
        source=example.source,
        max_tokens=task.budget(settings, example),
        run_max_tokens=run_max_tokens,
        chat=task.chat,
        cut=task.cut,
        # With another axis the length counts words or output tokens, which limit no prompt. A method has budgets of its
        # own, with which the length would cut the context of the same question more.
        length=settings.length if benchmark.axis and benchmark.axis.limits_prompt and is_plain else None,
        context_span=prompt.context,
        reserved=example.reserved,
        separator=prompt.separator,
        answer_prefix=prompt.answer_prefix,
        prefix_scored=task.prefix_scored,
        stop=stop_sequences(task, settings),
        thinking_tokens=settings.thinking_tokens,
        question=example.question,
        depth=example.depth,
        input_tokens=example.input_tokens,
        counter=example.counter,
        record=dict(example.record),
        group=example.group,
        follow_up=_follow_up(example.follow_up) if example.follow_up else None,
        answer_tokens=example.answer_tokens,
        errata=example.errata or None,
    )
    return Instance(
        input=_input(prompt),
        # HELM's pages show references with this tag as the correct answers.
        references=[Reference(Output(text=text), tags=[CORRECT_TAG]) for text in example.references],
        split=TEST_SPLIT,
        sub_split=task.name,
        id=example.id,
        extra_data=sample.to_json(),
    )


def _follow_up(follow_up: FollowUp) -> dict[str, Any]:
    # Without an ending, the data is that of earlier versions.
    return {name: value for name, value in asdict(follow_up).items() if value != ""}


def _input(prompt: Prompt) -> Input:
    """Return a single user turn as a text, as HELM's pages expect it, and any other conversation as messages."""
    if prompt.has_one_turn:
        return Input(text=prompt.user_turn)
    return Input(messages=[dict(message) for message in prompt.messages])


def stop_sequences(task: Task, settings: Settings) -> tuple[str, ...]:
    """Return the stop sequences of completions. A model that thinks gets none (HELMET eval.py:74)."""
    return () if settings.thinking_tokens else task.variant(settings).stop
