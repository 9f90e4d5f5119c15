"""Prompts, cuts and scores of the official code (golden_makers/lv_eval.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS, LENGTHS, LV_EVAL
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.cutting.cutters import middle_cutter
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.lv_eval.fabricate import (
    WINDOWS,
    build_lv_eval,
    score_records,
    tokenizers,
    truncation_prompts,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    join_comparisons,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
BY_NAME = {dataset.name: dataset for dataset in DATASETS}
SECOND = {"f1_gated": "f1_before_gate", "f1": "f1", "rouge_l": "rouge_l_all_words"}
"""By headline, the metric that the official code gives under another function's name."""


def digest_questions(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> dict[str, object]:
    """Return the budget, and digests of prompts, references and keywords."""
    questions = list(examples)
    references = []
    for question in questions:
        references.append(json.dumps(question.references, ensure_ascii=False))
    return {
        "max_tokens": BY_NAME[task.name].max_tokens,
        "prompts": digest(task.prompt(question).user_turn for question in questions),
        "references": digest(references),
        "keywords": digest(
            question.record["answer_keywords"] for question in questions
        ),
    }


def compare_questions() -> Iterator[Comparison]:
    """Yield the questions of all data sets at all lengths."""
    for dataset in DATASETS:
        task = LV_EVAL.task(dataset.name)
        for label, length in LENGTHS.items():
            case = f"{dataset.name} {label}"
            yield compare_examples(
                case,
                GOLDEN["prompts"][case],
                task,
                Settings(length),
                digest_questions,
            )


def make_cuts(name: str, window: int) -> Callable[[DataRoot], list[object]]:
    """Return a function that cuts prompts, and returns a digest of them and the number of those that were cut."""

    def cut_prompts(root: DataRoot) -> list[object]:
        cut = middle_cutter(tokenizers()[name])
        cuts = [cut(prompt, window) for prompt in truncation_prompts()]
        return [
            digest(fitted.prompt for fitted in cuts),
            sum(fitted.cut for fitted in cuts),
        ]

    return cut_prompts


def compare_cuts() -> Iterator[Comparison]:
    """Yield the cuts at even, odd, tiny and large windows."""
    for name in ("byte_level", "metaspace"):
        for window in WINDOWS:
            case = f"{name} {window}"
            yield Comparison(case, make_cuts(name, window), GOLDEN["cuts"][case])


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with both metrics; the headline is absent where the official code raises an error."""
    for record, row in zip(score_records(), GOLDEN["scores"], strict=True):
        headline = BY_NAME[record["dataset"]].scoring.names[0]
        first, second = json.loads(row)
        assert headline != SECOND[headline] or first == second
        metrics = {headline: first, SECOND[headline]: second}
        yield ScoredOutput(record["dataset"], record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=LV_EVAL,
    build=build_lv_eval,
    comparisons=join_comparisons((*compare_questions(), *compare_cuts()), words=1),
    list_outputs=list_outputs,
)
