"""Tests of the records that scorers get: right answers score 1 in both forms, with and without the answer prefix."""

from __future__ import annotations

import pytest
from helm.benchmark.adaptation.request_state import RequestState
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.helm.metric import scored_record
from helm_longctx.helm.scenario import to_instance
from helm_longctx.tasks import (
    Benchmark,
    Category,
    Example,
    Metric,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
)
from helm_longctx.tasks.prompt import Style
from helm_longctx.tasks.sample import Sample

PREFIX = "Answer:"
EXAMPLE = Example(
    "x-0",
    {"context": "Ben did it.", "question": "Who?"},
    ["Ben"],
    "generated",
    record={"aliases": ["Benjamin"]},
    group="book 1",
)
SETTINGS = Settings(length=4096)


def score_output(record: ScorerInput) -> MetricValues:
    """Score the whole output as the answer."""
    return {
        "exact": float(
            record["prediction"].strip() in [*record["references"], *record["aliases"]]
        )
    }


def score_with_prefix(record: ScorerInput) -> MetricValues:
    """Score what follows the prefix. Without a prefix there is no answer, unless the output is a chat's."""
    _, prefix, answer = record["prediction"].rpartition(PREFIX)
    return {
        "exact": float(
            (answer if prefix else record["prediction"]).strip() in record["references"]
        )
    }


def make_task(prefix_scored: bool) -> Task:
    return Task(
        name="who",
        title="Who",
        template=Template("{context}\n\n{question}", PREFIX),
        load=lambda task, settings, root: [EXAMPLE],
        score=score_with_prefix if prefix_scored else score_output,
        headline=("exact",),
        metrics=("exact",),
        max_tokens=10,
        sizes={4096: 1},
        prefix_scored=prefix_scored,
    )


def record_of(task: Task, output: str, form: Style) -> ScorerInput:
    """The record of an answer, from the instance that the scenario makes and the adapter sends."""
    benchmark = Benchmark(
        name="tiny",
        title="Tiny",
        description="",
        revision="tiny@1",
        comparability=1,
        url="",
        categories=(Category("", "", (task,)),),
        metrics=(Metric("exact", "Exact", "Whether the answer is the reference."),),
    )
    instance = to_instance(benchmark, task, SETTINGS, EXAMPLE, run_max_tokens=10)
    sent = Sample.from_json(instance.extra_data).extend(style=form)
    assert sent.group == EXAMPLE.group
    result = RequestResult(
        success=True,
        embedding=[],
        completions=[GeneratedOutput(output, 0, [])],
        cached=False,
    )
    return scored_record(
        RequestState(
            instance, None, None, 0, None, Request(), result, 0, prompt_truncated=False
        ),
        sent,
    )


@pytest.mark.parametrize("form", ["chat", "completion"])
@pytest.mark.parametrize("prefix_scored", [False, True])
def test_correct_answers_score_1(prefix_scored: bool, form: Style) -> None:
    """Whichever the task declares, a right answer is right in both forms, and a wrong one is wrong."""
    task = make_task(prefix_scored)
    assert task.scores(record_of(task, " Ben", form)) == {
        "exact": 1,
        "longctx_score": 1,
    }
    assert task.scores(record_of(task, " Cleo", form)) == {
        "exact": 0,
        "longctx_score": 0,
    }


@pytest.mark.parametrize(
    ("prefix_scored", "form", "output", "prediction"),
    [
        (False, "chat", " Ben\n", " Ben\n"),
        (False, "completion", " Ben\n", " Ben\n"),
        (True, "chat", " Ben\n", " Ben\n"),
        (True, "completion", " Ben\n", "Answer: Ben\n"),
        (True, "completion", "Cleo? No.</think> Ben\n", "Ben"),
        (False, "chat", "Cleo? No.</think> Ben\n", "Ben"),
    ],
)
def test_the_record(
    prefix_scored: bool, form: Style, output: str, prediction: str
) -> None:
    """The record's fields are those that the documentation of `tasks.task` lists."""
    assert record_of(make_task(prefix_scored), output, form) == {
        "prediction": prediction,
        "references": ["Ben"],
        "aliases": ["Benjamin"],
    }


def test_the_output_alone_is_the_default() -> None:
    """By default a benchmark is scored on the output without the prefix."""
    assert Task.__dataclass_fields__["prefix_scored"].default is False
