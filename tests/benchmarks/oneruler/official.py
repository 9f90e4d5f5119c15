"""Samples and scores of the official scripts (golden_makers/oneruler.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.oneruler.tasks import LANGUAGES, LISTS, NEEDLES, ONERULER
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.counting import make_counter
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.oneruler.fabricate import build_oneruler, score_cases, tokenizer
from tests.golden_makers.oneruler import SAMPLES, digest_row
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    join_comparisons,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
LISTED = ("en", "de", "ko", "zh", "hi")
"""The languages whose lists of words are generated here. They take long, and golden.json has those of all languages."""


def find_task(code: str, name: str) -> Task:
    """Return a task of a language."""
    return ONERULER.task(f"{code}_{name}".removeprefix("en_"))


def digest_rows(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> list[str]:
    """Return a digest of each sample: its prompt and its answers."""
    digests = []
    for example in examples:
        prompt = example.messages[0]["content"]
        digests.append(digest_row(prompt, example.references))
    return digests


def compare_samples() -> Iterator[Comparison]:
    """Yield the samples with needles in each language, and those with lists in some."""
    settings = Settings(8192, num_samples=SAMPLES, counter=make_counter(tokenizer()))
    for language in LANGUAGES:
        names = (*NEEDLES, *LISTS) if language.code in LISTED else NEEDLES
        for name in names:
            case = f"{language.code} {name}"
            yield compare_examples(
                case,
                GOLDEN["samples"][case],
                find_task(language.code, name),
                settings,
                digest_rows,
            )


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with both metrics."""
    cases = zip(score_cases(), GOLDEN["scores"].split(), strict=True)
    for (kind, code, expected, output), (accuracy, in_answer) in cases:
        record = {"prediction": output, "references": expected}
        metrics = {"accuracy": int(accuracy), "accuracy_in_answer": int(in_answer)}
        yield ScoredOutput(find_task(code, kind).name, record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=ONERULER,
    build=build_oneruler,
    comparisons=join_comparisons(compare_samples(), words=1),
    list_outputs=list_outputs,
)
