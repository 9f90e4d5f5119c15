from __future__ import annotations

import time

import pytest

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.models.forms import recognise
from helm_longctx.protocol.task import Task
from helm_longctx.protocol.template import CONTEXT, NO_TEMPLATE

TASKS = [
    task
    for benchmark in BENCHMARKS
    for task in benchmark.tasks
    if task.template is not NO_TEMPLATE
    and (baseline := benchmark.baselines.get(task.name))
    and isinstance(baseline.kind, str)
]
KINDS = {
    name: baseline.kind
    for benchmark in BENCHMARKS
    for name, baseline in benchmark.baselines.items()
    if isinstance(baseline.kind, str)  # tasks of two benchmarks can have one name
}
FIELDS = {"question": "red-fox", "input": "red-fox", "query": "red-fox", "type_needle_v": "number", "demos": "Key: a\n\n", "demo": "", "demo_text": "",
    "instruction": "Do.", "options": "A. x", "example": "", "num_v": "5"}  # fmt: skip


def prompts(task: Task, context: str) -> list[str]:
    # Demonstrations right before the context cannot be told from it.
    demos = {"demos": ""} if "{demos}{context}" in task.template.user else {}
    fields = {**FIELDS, CONTEXT: context, **demos}
    chat = task.template.render(fields).user_turn
    return [chat, task.template.render(fields).text("completion")]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_recognises_both_forms(task: Task) -> None:
    """A prompt of either form gives a task that is answered alike, and the fields it was made from.

    Two benchmarks can have the same user turn, and then differ in the answer prefix or in the examples before it.
    """
    for prompt in prompts(task, "some text\n\nof two paragraphs"):
        found = recognise(prompt)
        assert found is not None
        assert found.baseline.kind == KINDS[task.name]
        assert found.fields[CONTEXT] == "some text\n\nof two paragraphs"
        others = (CONTEXT, "demos", "example")
        assert all(value.startswith(FIELDS[name]) for name, value in found.fields.items() if name not in others)


def test_tasks_of_one_template_answer_alike() -> None:
    """Tasks that share a template need not be told apart: they share how they are answered."""
    answers: dict[object, set[object]] = {}
    for benchmark in BENCHMARKS:
        for task in benchmark.tasks:
            if task in TASKS:
                answers.setdefault(task.template, set()).add(benchmark.baselines[task.name])
    assert all(len(kinds) == 1 for kinds in answers.values())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_is_fast_on_a_megabyte(task: Task) -> None:
    """A megabyte of prompt is told in a fraction of a second."""
    for prompt in prompts(task, "a line of text. Key: label: \n\n" * 35_000):
        start = time.perf_counter()
        assert recognise(prompt)
        assert time.perf_counter() - start < 0.2
