"""A task's judgement says what a judge is asked, and how its replies are read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.object_spec import get_class_by_name
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.judging.answer_judge import AnswerAnnotator, make_annotator
from helm_longctx.judging.judge import Judge
from helm_longctx.tasks.judgement import ANSWER, AS_PUBLISHED, Judgement
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.task import Task
from tests.support.states import state

NOBODY = AutoClient({}, "", BlackHoleCacheBackendConfig())
"""HELM's client without keys."""

RECORD = {"question": "q", "prediction": "p", "references": ["r"]}
TASK = replace(
    find_benchmark("corpusqa").tasks[0],
    judgement=Judgement(
        lambda record: f"Is {record['prediction']} right?",
        lambda reply, record: (
            {"judge_score": 1.0} if reply == record["question"] else {}
        ),
        rubric="rubric",
        max_tokens=7,
        seed=3,
        system="s",
    ),
)


def test_one_question() -> None:
    """A single prompt is the question about the answer, with the judgement's sampling, and empty grades are no verdict."""
    annotator = make_annotator(TASK)
    questions = annotator.__new__(annotator).questions(TASK.name, RECORD)
    assert list(questions) == [ANSWER]
    request = questions[ANSWER]
    assert (request.prompt, request.system, request.max_tokens, request.seed) == (
        "Is p right?",
        "s",
        7,
        3,
    )
    assert [request.parse(reply) for reply in ("q", "other")] == [
        {"judge_score": 1.0},
        None,
    ]
    assert annotator.official == TASK.official_judge


def test_another_task_is_not_asked_about() -> None:
    """An annotator asks nothing about a task without a judgement."""
    annotator = make_annotator(TASK)
    assert annotator.__new__(annotator).questions("other", RECORD) == {}


def test_rubrics_differ() -> None:
    """The digest is the rubric's, which can depend on the record."""
    assert TASK.judgement
    other = replace(
        TASK,
        judgement=replace(TASK.judgement, rubric=lambda record: record["question"]),
    )
    digests = [
        make.__new__(make).digest(TASK.name, RECORD)
        for make in map(make_annotator, (TASK, other))
    ]
    assert len({*digests}) == 2


def test_tasks_with_other_judges_have_other_annotators() -> None:
    """Tasks of one annotator have one official judge."""
    with pytest.raises(ValueError, match="too many values"):
        make_annotator(TASK, replace(TASK, official_judge="openai/other"))


@pytest.mark.parametrize("benchmark", [benchmark.name for benchmark in BENCHMARKS])
def test_judgements_have_annotators(benchmark: str) -> None:
    """The annotator of a category knows the judgement of each of its tasks that has one."""
    for category in find_benchmark(benchmark).categories:
        annotator = get_class_by_name(category.judge) if category.judge else None
        for task in (*category.tasks, *category.variants):
            if task.judgement:
                assert annotator is not None
                assert issubclass(annotator, AnswerAnnotator)
                assert annotator.judgements[task.name] is task.judgement
                assert annotator.official == task.official_judge


class YesClient(Client):
    """A judge that calls every answer right, in the words of each benchmark."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def make_request(self, request: Request) -> RequestResult:
        """Count the request, and return a verdict."""
        self.asked.append(request)
        return RequestResult(True, [], [GeneratedOutput("CORRECT", 0, [])], False)


SILENT = [
    (task, task.judgement)
    for benchmark in BENCHMARKS
    for task in find_benchmark(benchmark.name).tasks
    if task.judgement and task.judgement.silence_reply is not None
]

OWN_FIELDS = {
    "rubric": ["a point"],
    "texts": ["", "<rubric_item> <llm_response>", "", ["", "", ""]],
    "ability": "abstention",
    "type": "single-session-user",
    "question_type": "single-session-user",
    "is_abstention": True,
    "value": "7",
}
"""Fields of the records of all these tasks."""


@pytest.mark.parametrize(
    ("task", "judgement"), [pytest.param(*pair, id=pair[0].name) for pair in SILENT]
)
def test_empty_answers_are_wrong_without_a_judge(
    task: Task, judgement: Judgement
) -> None:
    """No judge is asked about an answer of white space, which is wrong, unless the entry asks for the published way."""
    answered = state(
        1, " \n", task=task.name, style="chat", question="q", record=OWN_FIELDS
    )
    client = YesClient()
    annotator = make_annotator(task)(judge="tests/yes", auto_client=NOBODY)
    annotator.__dict__["_judges"] = [Judge("tests/yes", "m", client)]
    (annotation,) = annotator.annotate_all([answered])
    jury = annotation["jury"]
    assert not client.asked
    assert jury["failed"] == 0
    assert {
        value
        for grades in jury["verdicts"]["tests/yes"].values()
        for value in grades.values()
    } == {0.0}
    published = state(
        1,
        "",
        task=task.name,
        style="chat",
        question="q",
        record={**OWN_FIELDS, "scorer": AS_PUBLISHED},
    )
    annotator.annotate_all([published])
    assert client.asked


def test_judged_tasks_with_silence_are_known() -> None:
    """Benchmarks in which a judge gives a verdict about an answer do not ask it about an empty one."""
    names = {task.name for task, _ in SILENT}
    assert {"questions", "questions_v1_1", "rubric"} <= names
    assert len(names) > 10
