"""Requests, the judge's prompts and its verdicts equal the official code's on the same data (golden_makers/corpusqa.py)."""

from __future__ import annotations

import pytest
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig

from helm_longctx.benchmarks.corpusqa import BENCHMARK
from helm_longctx.benchmarks.corpusqa.judge import EquivalenceAnnotator
from helm_longctx.benchmarks.corpusqa.tasks import DOMAINS, find_answer
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.corpusqa.fabricate import (
    ANSWERS,
    LENGTH,
    OUTPUTS,
    REPLIES,
    build_corpusqa,
    judged,
    make_rows,
    reply_of,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Example]:
    root = DataRoot(build_corpusqa(tmp_path_factory.mktemp("corpusqa")), mirror=True)
    loaded = [
        example
        for domain in DOMAINS
        for example in load_examples(BENCHMARK.task(domain), Settings(LENGTH), root)
    ]
    return {example.id: example for example in loaded}


def known_rows() -> list[dict]:
    """Return the rows whose domain is known. The official code asks the others, too, and counts them in no domain."""
    return [row for row in make_rows() if row["id"] != "medicine_en_1"]


def test_requests(examples: dict[str, Example]) -> None:
    """Every message of every request is the official one, with its temperature; each domain has its questions."""
    assert set(examples) == {row["id"] for row in known_rows()}
    unknown = make_rows()[-1]["prompt"]
    conversations = [*(examples[row["id"]].messages for row in known_rows()), unknown]
    asked = [
        digest(message[key] for message in conversation for key in ("role", "content"))
        for conversation in conversations
    ]
    assert digest(sorted(asked)) == GOLDEN["prompts"]
    for domain in DOMAINS:
        assert (
            BENCHMARK.task(domain).variant(Settings(LENGTH)).temperature
            == GOLDEN["settings"]["temperature"]
        )


def test_judge(examples: dict[str, Example]) -> None:
    """The judge gets the official messages at the official temperature, and its replies are read as in the official code."""
    annotator = EquivalenceAnnotator(
        "auto", AutoClient({}, "", BlackHoleCacheBackendConfig())
    )
    asked = []
    correct = {}
    for row in judged():
        references = [str(row["answer"])]
        record = {
            "question": row["question"],
            "prediction": row["response"],
            "references": references,
        }
        (request,) = annotator.questions("financial_en", record).values()
        asked += [request.system, request.prompt]
        verdict = request.parse(reply_of(request.prompt))
        correct[row["id"]] = bool(verdict and verdict["judge_score"])
        assert [request.temperature] == GOLDEN["judge_temperatures"]
    assert digest(sorted(asked)) == GOLDEN["judge"]
    assert correct == GOLDEN["correct"]
    assert {True, False} == set(correct.values())
    assert all(
        examples[row["id"]].references == [str(row["answer"])] for row in known_rows()
    )


def test_cases_say_something() -> None:
    """The golden cases have answers of all kinds, and outputs with and without the official form."""
    assert {type(answer) for answer in ANSWERS} == {float, list, str, int}
    assert [find_answer(output) for output in OUTPUTS[:3]] == [
        "282",
        '["a"]',
        "the answer is: 3",
    ]
    assert find_answer(OUTPUTS[5]) == "1. The answer is: 2"
    assert len(REPLIES) > 8
