"""Requests and scores of the official code (golden_makers/leval.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.leval import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.leval.fabricate import build_leval, outputs
from tests.support.golden_cases import GoldenCases, ScoredOutput, compare_examples
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SETTINGS = Settings(None, num_samples=1000)


def digest_requests(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of all messages, budgets and temperatures."""
    variant = task.variant(settings)
    budget = task.output_tokens(settings)
    requests = []
    for example in examples:
        prompt = task.prompt(example, variant.system)
        messages = [dict(message) for message in prompt.messages]
        requests.append(json.dumps([messages, budget, variant.temperature]))
    return digest(requests)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs; those of SciFi have two answers, each with a score."""
    for (name, answer, output), official in zip(
        outputs(), GOLDEN["scores"], strict=True
    ):
        metrics = BENCHMARK.task(name).metrics
        scores = official if isinstance(official, list) else [official]
        if name != "sci_fi":
            record = {"prediction": output, "references": [answer]}
            yield ScoredOutput(name, record, dict(zip(metrics, scores, strict=True)))
            continue
        answers = [part.strip(" ]") for part in answer.lower().split("[fact:")]
        for reference, score in zip(answers, scores, strict=True):
            record = {"prediction": output, "references": [reference]}
            yield ScoredOutput(name, record, {metrics[0]: score})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_leval,
    comparisons=tuple(
        compare_examples(
            task.name, GOLDEN["asked"][task.name], task, SETTINGS, digest_requests
        )
        for task in BENCHMARK.tasks
    ),
    list_outputs=list_outputs,
)
