"""Prompts, the judge's requests, its labels and the accuracies of the official code (golden_makers/longmemeval.py)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from helm_longctx.benchmarks.longmemeval import BENCHMARK
from helm_longctx.benchmarks.longmemeval.judge import LabelAnnotator
from helm_longctx.benchmarks.longmemeval.tasks import BY_KIND, JUDGE, READINGS
from helm_longctx.data.root import DataRoot
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import MetricValues, Settings
from tests.benchmarks.longmemeval.fabricate import (
    ODD_REPLIES,
    build_longmemeval,
    make_answers,
)
from tests.support.golden_cases import Comparison, GoldenCases, compare_examples
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("s")
METRICS = {
    **BY_KIND,
    "Overall Accuracy": "judge_score",
    "Abstention Accuracy": "judge_score_abstention",
}
"""Our metrics, by what the official script prints."""


def list_records(root: DataRoot) -> Iterator[dict[str, Any]]:
    """Yield the records of the fabricated answers, without a judge's reply."""
    examples = load_examples(TASK, Settings(None), root)
    for example, text in zip(examples, make_answers(len(ODD_REPLIES)), strict=True):
        yield {
            **example.record,
            "question": example.question,
            "references": example.references,
            "prediction": text,
        }


def list_requests(root: DataRoot) -> Iterator[JudgeRequest]:
    """Yield the judge's requests for each type of questions, and for abstention questions."""
    annotator = LabelAnnotator("auto", None)
    for record in list_records(root):
        yield from annotator.questions("s", record).values()


def digest_judge_prompts(root: DataRoot) -> str:
    """Return a digest of the judge's prompts."""
    return digest(request.prompt for request in list_requests(root))


def list_options(root: DataRoot) -> list[dict[str, object]]:
    """Return the different options with which the judge is asked. It gets no system message, and is asked once."""
    options: list[dict[str, object]] = []
    for request in list_requests(root):
        assert (request.system, request.readings) == ("", 1)
        own = {
            "model": JUDGE.removeprefix("openai/"),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if own not in options:
            options.append(own)
    return options


def list_scores(root: DataRoot) -> list[MetricValues]:
    """Return the scores by the judge's odd replies."""
    return [
        TASK.scores({**record, "judge": reply})
        for record, reply in zip(list_records(root), ODD_REPLIES, strict=True)
    ]


def list_labels(root: DataRoot) -> list[bool]:
    """Return whether the judge's replies say that the answers are right."""
    return [scores["longctx_score"] == 1 for scores in list_scores(root)]


def print_accuracies(root: DataRoot) -> dict[str, str]:
    """Return the accuracies by type, over all questions, over types, and of abstention."""
    scores = list_scores(root)
    means = {}
    for name, metric in METRICS.items():
        means[name] = fmean(own[metric] for own in scores if metric in own)
    means["Task-averaged Accuracy"] = fmean(means[kind] for kind in BY_KIND)
    return {name: f"{mean:.4f}" for name, mean in means.items()}


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longmemeval,
    comparisons=(
        *(
            compare_examples(
                f"prompts {name}",
                GOLDEN["prompts"][name],
                BENCHMARK.task(f"s_{name}" if name else "s"),
            )
            for name in READINGS
        ),
        Comparison("judge", digest_judge_prompts, GOLDEN["judge_prompts"]),
        Comparison("options", list_options, [GOLDEN["options"]]),
        Comparison("labels", list_labels, GOLDEN["labels"]),
        Comparison(
            "accuracies",
            print_accuracies,
            {name: f"{float(value):.4f}" for name, value in GOLDEN["printed"].items()},
        ),
    ),
)
