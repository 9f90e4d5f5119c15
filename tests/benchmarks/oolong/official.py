"""Requests and scores of the official code (golden_makers/oolong.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from helm_longctx.benchmarks.oolong.data import read_answers
from helm_longctx.benchmarks.oolong.tasks import OOLONG, TEST
from helm_longctx.data.jsonl import FileRow
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.oolong.fabricate import build_oolong, score_cases
from tests.golden_makers.oolong import LENGTH, digest_request
from tests.support.golden_cases import Comparison, GoldenCases, ScoredOutput
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def digest_requests(name: str) -> Callable[[DataRoot], list[str]]:
    """Return a function that loads the rows of a file, and returns a digest of each request with `protocol=api`."""
    if name == "real":
        tasks = [OOLONG.task("dnd")]
        lengths = tasks[0].sizes
    else:
        suffix = name.removeprefix("synth")
        tasks = [OOLONG.task(dataset + suffix) for dataset in TEST]
        lengths = (LENGTH,)

    def load(root: DataRoot) -> list[str]:
        digests = []
        for task in tasks:
            for length in lengths:
                settings = Settings(length, protocol="api")
                for example in load_examples(task, settings, root):
                    turns = task.prompt(example).messages
                    request = [[turn["role"], turn["content"]] for turn in turns]
                    digests.append(digest_request(request))
        return sorted(digests)

    return load


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs; where the official code fails, the score is 0."""
    for case, official in zip(score_cases(), GOLDEN["scores"], strict=True):
        references = [case["answer"]]
        if case["synth"]:
            references = read_answers(FileRow(case, Path("x"), 1))[:1]
        record = {
            "prediction": case["output"],
            "answer_type": case["answer_type"],
            "references": references,
        }
        credit = 0 if isinstance(official, str) else official
        metrics = {"credit": credit, "exact": credit == 1}
        yield ScoredOutput("agnews" if case["synth"] else "dnd", record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=OOLONG,
    build=build_oolong,
    comparisons=tuple(
        Comparison(name, digest_requests(name), official)
        for name, official in GOLDEN["requests"].items()
    ),
    list_outputs=list_outputs,
)
