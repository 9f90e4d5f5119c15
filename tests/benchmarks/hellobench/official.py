"""The judge's requests, its readable replies and the scores of the official code (golden_makers/hellobench.py)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from helm_longctx.benchmarks.hellobench import BENCHMARK
from helm_longctx.benchmarks.hellobench.judge import ChecklistAnnotator
from helm_longctx.data.root import DataRoot
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import MetricValues, Settings
from tests.benchmarks.hellobench.fabricate import (
    build_hellobench,
    make_answers,
    odd_replies,
)
from tests.support.golden_cases import Comparison, GoldenCases
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("chat")


def list_requests(root: DataRoot) -> Iterator[JudgeRequest]:
    """Yield the judge's requests, also for texts that have placeholders or are longer than its limit."""
    annotator = ChecklistAnnotator("auto", None)
    examples = load_examples(TASK, Settings(None), root)
    for example, answer in zip(examples, make_answers(), strict=True):
        record = {
            **example.record,
            "question": example.fields["input"],
            "prediction": answer,
        }
        (request,) = annotator.questions("chat", record).values()
        yield request


def digest_messages(root: DataRoot) -> str:
    """Return a digest of the judge's messages."""
    messages = []
    for request in list_requests(root):
        messages += [request.system, request.prompt]
    return digest(messages)


def list_options(root: DataRoot) -> list[dict[str, object]]:
    """Return the different options with which the judge is asked."""
    options: list[dict[str, object]] = []
    for request in list_requests(root):
        assert (request.top_p, request.readings) == (1.0, 3)
        own = {
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        if own not in options:
            options.append(own)
    return options


def list_scores(root: DataRoot) -> Iterator[MetricValues]:
    """Yield the scores of all answers with the same reply."""
    reply = odd_replies()[0]
    examples = load_examples(TASK, Settings(None), root)
    for example, answer in zip(examples, make_answers(), strict=True):
        scores = TASK.scores({**example.record, "prediction": answer, "judge": reply})
        assert scores["longctx_score"] == scores["judge_score"]
        yield scores


def compute_means(root: DataRoot) -> list[float]:
    """Return the means of scores and rescaled scores in percent."""
    scores = list(list_scores(root))
    return [
        100 * fmean(own[name] for own in scores)
        for name in ("judge_score", "rescaled_score")
    ]


def count_words(root: DataRoot) -> float:
    """Return the mean number of words."""
    return fmean(own["output_words"] for own in list_scores(root))


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_hellobench,
    comparisons=(
        Comparison("judge", digest_messages, GOLDEN["prompts"]),
        Comparison("options", list_options, [GOLDEN["options"]]),
        Comparison(
            "means",
            compute_means,
            [GOLDEN["score"], GOLDEN["rescaled"]],
            relative=1e-14,
        ),
        Comparison("words", count_words, GOLDEN["words"]),
    ),
)
