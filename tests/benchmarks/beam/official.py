"""Requests, the judge's requests and scores of the official code (golden_makers/beam.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from helm_longctx.benchmarks.beam import BENCHMARK
from helm_longctx.benchmarks.beam.tasks import CHATS, ORDERING, align, judge_prompts
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.beam.fabricate import build_beam, make_answer, reply
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    digest_messages,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("questions")
METRICS = ("judge_score", "event_f1", "event_score", "rubric_score")
"""The metrics of a question about the order of events; the other questions have only the first."""


class OrderedReplies(dict[str, str]):
    """Replies that remember in which order they were read."""

    def __init__(self, replies: dict[str, str]):
        super().__init__(replies)
        self.names: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.names.append(name)
        return super().__getitem__(name)


def make_settings(length: int) -> Settings:
    """Return settings with the whole chats, which the official code was given."""
    return Settings(length, chats="full")


def list_records(
    root: DataRoot, length: int
) -> Iterator[tuple[dict[str, Any], list[float | None] | None]]:
    """Yield the records of odd answers, with the judge's replies, and their official scores."""
    examples = load_examples(TASK, make_settings(length), root)
    scores = GOLDEN[str(length)]["scores"]
    for number, (example, official) in enumerate(zip(examples, scores, strict=True)):
        record = {
            **example.record,
            "prediction": make_answer(number, example.record["rubric"]),
            "references": [],
        }
        prompts = judge_prompts(record)
        record["judge"] = {part: reply(prompt) for part, prompt in prompts.items()}
        yield record, official


def digest_judge_prompts(length: int) -> Callable[[DataRoot], list[str]]:
    """Return a function that returns digests of what the judge is asked about items and about pairs of events."""

    def compute(root: DataRoot) -> list[str]:
        items = []
        pairs = []
        for record, official in list_records(root, length):
            prompts = judge_prompts(record)
            if record["ability"] == ORDERING:
                replies = OrderedReplies(record["judge"])
                align(record["rubric"], record["prediction"], replies)
                pairs += [prompts[name] for name in replies.names]
            if official is not None:
                for part, prompt in prompts.items():
                    if part.startswith("item"):
                        items.append(prompt)
        return [digest(items), digest(pairs)]

    return compute


def compare_requests() -> Iterator[Comparison]:
    """Yield what models and the judge are asked at all lengths."""
    for length in CHATS:
        golden = GOLDEN[str(length)]
        yield compare_examples(
            str(length), golden["prompts"], TASK, make_settings(length), digest_messages
        )
        asked = digest_judge_prompts(length)
        official = [golden["items"], golden["pairs"]]
        yield Comparison(f"{length} judge", asked, official)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd answers and replies; a score also counts for the question's ability."""
    for length in CHATS:
        for record, official in list_records(root, length):
            by_ability = f"judge_score_{record['ability']}"
            metrics: dict[str, float | None] = {"judge_score": None, by_ability: None}
            if official is not None:
                metrics = dict(zip(METRICS, official, strict=False))
                metrics[by_ability] = metrics["judge_score"]
            yield ScoredOutput(TASK.name, record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_beam,
    comparisons=tuple(compare_requests()),
    list_outputs=list_outputs,
)
