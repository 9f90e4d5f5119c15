"""Prompts, the judge's prompts and the tables equal the official code's on the same data (golden_makers/longgenbench.py)."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

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
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longgenbench.fabricate import (
    build_longgenbench,
    outputs,
    reply_to,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
(TASK,) = BENCHMARK.tasks
CASES = [(length, form) for length in FILES for form in ("local", "api")]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Example]]:
    root = DataRoot(
        build_longgenbench(tmp_path_factory.mktemp("longgenbench")), mirror=True
    )
    return {
        length: list(load_examples(TASK, Settings(length), root)) for length in FILES
    }


def judged_records(
    examples: list[Example], length: int, form: str
) -> list[dict[str, Any]]:
    """Return the records of all texts with the judge's replies."""
    texts = outputs(length, restart=form == "api")
    records = [
        {**example.record, "prediction": text, "references": []}
        for example, text in zip(examples, texts, strict=True)
    ]
    return [
        {
            **record,
            "judge": {
                part: reply_to(prompt) for part, prompt in judge_prompts(record).items()
            },
        }
        for record in records
    ]


@pytest.mark.parametrize("length", FILES)
def test_prompts(examples: dict[int, list[Example]], length: int) -> None:
    """Every prompt and the order are the official ones, as chats and as completions."""
    forms: tuple[Style, ...] = ("chat", "completion")
    for form in forms:
        assert (
            digest(TASK.prompt(example).text(form) for example in examples[length])
            == GOLDEN[str(length)]["prompts"]
        )


@pytest.mark.parametrize(("length", "form"), CASES)
def test_judge_prompts(
    examples: dict[int, list[Example]], length: int, form: str
) -> None:
    """The judge's prompts are the official ones; the official code asks them by kind for all texts."""
    asked = [
        judge_prompts(record)
        for record in judged_records(examples[length], length, form)
    ]
    in_order = [
        prompt
        for kind in KINDS
        for prompts in asked
        for part, prompt in prompts.items()
        if part.startswith(kind)
    ]
    assert digest(in_order) == GOLDEN[str(length)][form]["judge_prompts"]


@pytest.mark.parametrize(("length", "form"), CASES)
def test_tables(examples: dict[int, list[Example]], length: int, form: str) -> None:
    """The means over texts are the official ratios of sums, and STIC-1 is the quotient of two of the means."""
    records = judged_records(examples[length], length, form)
    found = [TASK.scores(record) for record in records]
    checks, _, _, made, stic_1, stic_2, words, completion = GOLDEN[str(length)][form][
        "static"
    ]
    assert sum(len(record[name]) for record in records for name in CHECKS) == checks
    means = {
        name: fmean(scores[name] for scores in found)
        for name in ("checks_made", "judge_stic_2", "completion_rate")
    }
    expected = {
        "checks_made": made,
        "judge_stic_2": stic_2,
        "completion_rate": completion / 100,
    }
    assert means == pytest.approx(expected, rel=1e-14)
    assert means["judge_stic_2"] / means["checks_made"] == pytest.approx(
        stic_1, rel=1e-14
    )
    counted = [scores["output_words"] for scores in found if "output_words" in scores]
    assert fmean(counted) == pytest.approx(words, rel=1e-14)
    assert 0 < len(counted) < len(found)
    assert all(scores["longctx_score"] == scores["judge_stic_2"] for scores in found)


@pytest.mark.parametrize(("length", "form"), CASES)
def test_accuracies(examples: dict[int, list[Example]], length: int, form: str) -> None:
    """The accuracies by kind of instruction are the official values over all texts."""
    records = judged_records(examples[length], length, form)
    _, *expected, _ = GOLDEN[str(length)][form]["accuracies"]
    for kind, accuracy in zip(KINDS, expected, strict=True):
        met = [
            is_yes(reply)
            for record in records
            for part, reply in record["judge"].items()
            if part.startswith(kind)
        ]
        assert fmean(met) == pytest.approx(accuracy, rel=1e-14)
