from __future__ import annotations

import pytest

from helm_longctx.models.baselines.lexical import recognise
from helm_longctx.tasks.prompt import CONTEXT, NO_TEMPLATE
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Task

ALL_TASKS = [
    task
    for benchmark in BENCHMARKS
    for task in benchmark.tasks
    if task.template is not NO_TEMPLATE
    and task.baseline
    and isinstance(task.baseline.kind, str)
]
TASKS = [*{task.template: task for task in ALL_TASKS}.values()]
"""A task for each template: only that decides what a prompt is recognized as."""

FIELDS = {"question": "red-fox", "input": "red-fox", "query": "red-fox", "type_needle_v": "number", "demos": "Key: a\n\n", "demo": "", "demo_text": "",
    "instruction": "Do.", "options": "A. x", "example": "", "num_v": "5", "func": "f", "func_call": "f(3)", "date": "2023/05/20", "target": "the largest number",
    "words": "50", "first": "Ann", "second": "Bo"}  # fmt: skip


def prompts(task: Task, context: str) -> list[str]:
    # Demonstrations right before the context cannot be told from it.
    demos = {"demos": ""} if "{demos}{context}" in task.template.user else {}
    fields = {**FIELDS, CONTEXT: context, **demos}
    chat = task.template.render(fields).user_turn
    return [chat, task.template.render(fields).text("completion")]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_recognises_both_forms(task: Task) -> None:
    """A prompt of either form is assigned to a task with the same kind of answer, and its fields are recovered.

    Two benchmarks can have the same user turn, and then differ in the answer prefix or in the examples before it.
    """
    for prompt in prompts(task, "some text\n\nof two paragraphs"):
        form = recognise(prompt)
        assert form is not None
        assert task.baseline is not None
        assert form.baseline.kind == task.baseline.kind
        assert form.fields[CONTEXT] == "some text\n\nof two paragraphs"
        others = (CONTEXT, "demos", "example")
        assert all(
            value.startswith(FIELDS[name])
            for name, value in form.fields.items()
            if name not in others
        )


def test_tasks_of_one_template_answer_alike() -> None:
    """Tasks with the same template also have the same kind of answer, so they need not be distinguished."""
    answers: dict[object, set[object]] = {}
    for task in ALL_TASKS:
        answers.setdefault(task.template, set()).add(task.baseline)
    assert all(len(kinds) == 1 for kinds in answers.values())


def test_texts_of_no_task_are_not_recognised() -> None:
    """A text with paragraphs is a prompt of no task, because every recognised template has words of its own."""
    assert recognise("some text\n\nof two paragraphs\n\nWho are you?") is None


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_megabyte(task: Task) -> None:
    """A prompt of a megabyte is recognized, also if its context repeats words of the templates."""
    assert all(
        map(recognise, prompts(task, "a line of text. Key: label: \n\n" * 35_000))
    )
