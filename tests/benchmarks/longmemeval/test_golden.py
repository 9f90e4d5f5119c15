"""Prompts, the judge's prompts, its labels and the accuracies equal the official code's (golden_makers/longmemeval.py)."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.longmemeval import BENCHMARK
from helm_longctx.benchmarks.longmemeval.judge import LabelAnnotator
from helm_longctx.benchmarks.longmemeval.tasks import (
    BY_KIND,
    JUDGE,
    READINGS,
    read_label,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longmemeval.fabricate import (
    ODD_REPLIES,
    build_longmemeval,
    make_answers,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("s")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(
        build_longmemeval(tmp_path_factory.mktemp("longmemeval")), mirror=True
    )


@pytest.fixture(scope="module")
def examples(root: DataRoot) -> list[Example]:
    return list(load_examples(TASK, Settings(None), root))


def make_records(examples: Iterable[Example]) -> list[dict[str, Any]]:
    """Return the records of the fabricated answers, without a judge's reply."""
    texts = make_answers(len(ODD_REPLIES))
    return [
        {
            **each.record,
            "question": each.question,
            "references": each.references,
            "prediction": text,
        }
        for each, text in zip(examples, texts, strict=True)
    ]


def test_prompts(root: DataRoot) -> None:
    """The prompts of all forms of the chats are the official ones."""
    for name in READINGS:
        task = BENCHMARK.task(f"s_{name}" if name else "s")
        prompts = [
            task.prompt(example).user_turn
            for example in load_examples(task, Settings(None), root)
        ]
        assert digest(prompts) == GOLDEN["prompts"][name], name


def test_requests_to_the_judge(examples: list[Example]) -> None:
    """The judge gets the official prompt of each type of questions, and of abstention questions, with the official options."""
    annotator = LabelAnnotator.__new__(LabelAnnotator)
    requests = list[JudgeRequest]()
    for record in make_records(examples):
        requests += annotator.questions("s", record).values()
    assert digest(request.prompt for request in requests) == GOLDEN["judge_prompts"]
    options = {
        (request.temperature, request.max_tokens, request.system, request.readings)
        for request in requests
    }
    assert options == {
        (GOLDEN["options"]["temperature"], GOLDEN["options"]["max_tokens"], "", 1)
    }
    assert f"openai/{GOLDEN['options']['model']}" == JUDGE


def test_accuracies(examples: list[Example]) -> None:
    """The label of each reply, and the accuracies by type, over all questions and of abstention are the official ones."""
    pairs = zip(make_records(examples), ODD_REPLIES, strict=True)
    found = [TASK.scores({**record, "judge": reply}) for record, reply in pairs]
    assert [scores["longctx_score"] == 1 for scores in found] == GOLDEN["labels"]
    metrics = {
        **BY_KIND,
        "Overall Accuracy": "judge_score",
        "Abstention Accuracy": "judge_score_abstention",
    }
    means = {
        name: fmean(each[metric] for each in found if metric in each)
        for name, metric in metrics.items()
    }
    means["Task-averaged Accuracy"] = fmean(means[kind] for kind in BY_KIND)
    assert {name: f"{mean:.4f}" for name, mean in means.items()} == {
        name: f"{float(value):.4f}" for name, value in GOLDEN["printed"].items()
    }


@given(st.text())
def test_any_reply_is_read(reply: str) -> None:
    """Any text is a label, which is 1 only if the text contains a yes; an empty one is none."""
    found = read_label(reply)
    assert found == ({"judge_score": float("yes" in reply.lower())} if reply else {})
    assert read_label(f"{reply} Yes") == {"judge_score": 1.0}


@pytest.mark.parametrize("reply", [None, 5, {"answer": "yes"}, ""])
def test_no_reply(reply: object) -> None:
    """Without a text there is no score, also not by type."""
    assert (
        TASK.scores(
            {
                "prediction": "x",
                "references": ["y"],
                "question_type": "multi-session",
                "judge": reply,
            }
        )
        == {}
    )
