"""Prompts, the judge's prompts and the tables of the official code (golden_makers/longgenbench.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any

from helm_longctx.benchmarks.longgenbench import BENCHMARK
from helm_longctx.benchmarks.longgenbench.tasks import (
    CHECKS,
    FILES,
    KINDS,
    is_yes,
    judge_prompts,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.prompt import Style
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longgenbench.fabricate import (
    build_longgenbench,
    outputs,
    reply_to,
)
from tests.support.golden_cases import Comparison, GoldenCases
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
(TASK,) = BENCHMARK.tasks
FORMS = ("local", "api")
"""The official codes for local models and for APIs, whose texts differ."""
DIGITS = 1e-14
"""Our means over texts are the official ratios of sums but for the last digit."""


def digest_prompts(length: int, style: Style) -> Callable[[DataRoot], str]:
    """Return a function that returns a digest of all prompts."""

    def compute(root: DataRoot) -> str:
        examples = load_examples(TASK, Settings(length), root)
        return digest(TASK.prompt(example).text(style) for example in examples)

    return compute


def list_records(root: DataRoot, length: int, form: str) -> Iterator[dict[str, Any]]:
    """Yield the records of all texts with the judge's replies."""
    examples = load_examples(TASK, Settings(length), root)
    texts = outputs(length, restart=form == "api")
    for example, text in zip(examples, texts, strict=True):
        record = {**example.record, "prediction": text, "references": []}
        prompts = judge_prompts(record)
        replies = {part: reply_to(prompt) for part, prompt in prompts.items()}
        yield {**record, "judge": replies}


def digest_judge_prompts(length: int, form: str) -> Callable[[DataRoot], str]:
    """Return a function that returns a digest of the judge's prompts.

    The official code asks them by kind for all texts.
    """

    def compute(root: DataRoot) -> str:
        asked = [judge_prompts(record) for record in list_records(root, length, form)]
        in_order = []
        for kind in KINDS:
            for prompts in asked:
                for part, prompt in prompts.items():
                    if part.startswith(kind):
                        in_order.append(prompt)
        return digest(in_order)

    return compute


def compute_table(length: int, form: str) -> Callable[[DataRoot], list[float]]:
    """Return a function that returns the number of checks and our means over texts, STIC-1 as a quotient of two."""

    def compute(root: DataRoot) -> list[float]:
        records = list(list_records(root, length, form))
        scores = [TASK.scores(record) for record in records]
        for own in scores:
            assert own["longctx_score"] == own["judge_stic_2"]
        words = [own["output_words"] for own in scores if "output_words" in own]
        assert 0 < len(words) < len(scores)
        checks = 0
        for record in records:
            checks += sum(len(record[name]) for name in CHECKS)
        made = fmean(own["checks_made"] for own in scores)
        stic_2 = fmean(own["judge_stic_2"] for own in scores)
        return [
            checks,
            made,
            stic_2 / made,
            stic_2,
            fmean(words),
            100 * fmean(own["completion_rate"] for own in scores),
        ]

    return compute


def compute_accuracies(length: int, form: str) -> Callable[[DataRoot], list[float]]:
    """Return a function that returns the accuracy of each kind of instruction over all texts."""

    def compute(root: DataRoot) -> list[float]:
        verdicts: dict[str, list[bool]] = {kind: [] for kind in KINDS}
        for record in list_records(root, length, form):
            for part, reply in record["judge"].items():
                for kind in KINDS:
                    if part.startswith(kind):
                        verdicts[kind].append(is_yes(reply))
        return [fmean(own) for own in verdicts.values()]

    return compute


def compare_lengths() -> Iterator[Comparison]:
    """Yield the prompts, the judge's prompts and the tables of both lengths."""
    styles: tuple[Style, ...] = ("chat", "completion")
    for length in FILES:
        golden = GOLDEN[str(length)]
        for style in styles:
            prompts = digest_prompts(length, style)
            yield Comparison(f"{length} {style}", prompts, golden["prompts"])
        for form in FORMS:
            case = f"{length} {form}"
            official = golden[form]
            asked = digest_judge_prompts(length, form)
            yield Comparison(f"{case} judge", asked, official["judge_prompts"])
            checks, _, _, *means = official["static"]
            table = compute_table(length, form)
            yield Comparison(f"{case} table", table, [checks, *means], DIGITS)
            _, *kinds, _ = official["accuracies"]
            accuracies = compute_accuracies(length, form)
            yield Comparison(f"{case} accuracies", accuracies, kinds, DIGITS)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longgenbench,
    comparisons=tuple(compare_lengths()),
)
