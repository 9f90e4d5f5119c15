"""Requests, the judge's prompts and verdicts of the official code (golden_makers/corpusqa.py)."""

from __future__ import annotations

from collections.abc import Iterator

from helm_longctx.benchmarks.corpusqa import BENCHMARK
from helm_longctx.benchmarks.corpusqa.judge import EquivalenceAnnotator
from helm_longctx.benchmarks.corpusqa.tasks import DOMAINS
from helm_longctx.data.root import DataRoot
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.corpusqa.fabricate import (
    LENGTH,
    build_corpusqa,
    judged,
    make_rows,
    reply_of,
)
from tests.support.golden_cases import Comparison, GoldenCases
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
UNKNOWN = "medicine_en_1"
"""A row without a known domain. The official code asks it, too, and counts it in no domain."""


def digest_requests(root: DataRoot) -> str:
    """Return a digest of the messages of all requests."""
    conversations = []
    for domain in DOMAINS:
        for example in load_examples(BENCHMARK.task(domain), Settings(LENGTH), root):
            conversations.append(example.messages)
    conversations += [row["prompt"] for row in make_rows() if row["id"] == UNKNOWN]
    digests = []
    for conversation in conversations:
        texts = []
        for turn in conversation:
            texts += [turn["role"], turn["content"]]
        digests.append(digest(texts))
    return digest(sorted(digests))


def list_references(root: DataRoot) -> dict[str, list[str]]:
    """Return the reference answers by question."""
    references = {}
    for domain in DOMAINS:
        for example in load_examples(BENCHMARK.task(domain), Settings(LENGTH), root):
            references[example.id] = example.references
    return references


def list_temperatures(root: DataRoot) -> list[float | None]:
    """Return the temperature of each domain."""
    settings = Settings(LENGTH)
    return [BENCHMARK.task(domain).variant(settings).temperature for domain in DOMAINS]


def list_judged() -> Iterator[tuple[str, JudgeRequest]]:
    """Yield each judged question with its request."""
    annotator = EquivalenceAnnotator("auto", None)
    for row in judged():
        record = {
            "question": row["question"],
            "prediction": row["response"],
            "references": [str(row["answer"])],
        }
        (request,) = annotator.questions("financial_en", record).values()
        yield row["id"], request


def digest_judge_requests(root: DataRoot) -> str:
    """Return a digest of the judge's messages."""
    asked = []
    for _, request in list_judged():
        asked += [request.system, request.prompt]
    return digest(sorted(asked))


def list_judge_temperatures(root: DataRoot) -> list[float]:
    """Return the different temperatures with which the judge is asked."""
    return sorted({request.temperature for _, request in list_judged()})


def read_verdicts(root: DataRoot) -> dict[str, bool]:
    """Return the questions with our verdicts of odd replies; without a verdict an answer is not right."""
    verdicts = {}
    for question, request in list_judged():
        verdict = request.parse(reply_of(request.prompt))
        verdicts[question] = bool(verdict and verdict["judge_score"])
    return verdicts


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_corpusqa,
    comparisons=(
        Comparison("prompts", digest_requests, GOLDEN["prompts"]),
        Comparison(
            "answers",
            list_references,
            {
                row["id"]: [str(row["answer"])]
                for row in make_rows()
                if row["id"] != UNKNOWN
            },
        ),
        Comparison(
            "temperature",
            list_temperatures,
            [GOLDEN["settings"]["temperature"]] * len(DOMAINS),
        ),
        Comparison("judge", digest_judge_requests, GOLDEN["judge"]),
        Comparison(
            "judge's temperature", list_judge_temperatures, GOLDEN["judge_temperatures"]
        ),
        Comparison("verdicts", read_verdicts, GOLDEN["correct"]),
    ),
)
