"""Prompts, cuts and scores equal the official code's, which was run on the same data (golden_makers/lv_eval.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS, LENGTHS, LV_EVAL
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.cutting.cutters import middle_cutter
from helm_longctx.tasks.task import Settings
from tests.benchmarks.lv_eval.fabricate import (
    WINDOWS,
    build_lv_eval,
    score_records,
    tokenizers,
    truncation_prompts,
)
from tests.support.official import digest

BY_NAME = {dataset.name: dataset for dataset in DATASETS}
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
SCORES = [json.loads(row) for row in GOLDEN["scores"]]
SECOND = {"f1_gated": "f1_before_gate", "f1": "f1", "rouge_l": "rouge_l_all_words"}
"""By headline, the metric that the official code gives under another function's name."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lv_eval(tmp_path_factory.mktemp("lv_eval"))


@pytest.mark.parametrize("case", GOLDEN["prompts"])
def test_prompts(case: str, root: Path) -> None:
    """Every prompt, the references, the keywords, the budget and the order are the official ones."""
    name, length = case.split()
    dataset = BY_NAME[name]
    task = LV_EVAL.task(name)
    questions = list(
        task.load(task, Settings(LENGTHS[length]), DataRoot(root, mirror=True))
    )
    assert GOLDEN["prompts"][case] == {
        "max_tokens": dataset.max_tokens,
        "prompts": digest(task.prompt(question).user_turn for question in questions),
        "references": digest(
            json.dumps(question.references, ensure_ascii=False)
            for question in questions
        ),
        "keywords": digest(
            question.record["answer_keywords"] for question in questions
        ),
    }


def test_every_dataset_has_golden_prompts() -> None:
    """The golden file covers all data sets at all lengths."""
    assert set(GOLDEN["prompts"]) == {
        f"{dataset.name} {length}" for dataset in DATASETS for length in LENGTHS
    }


@pytest.mark.parametrize(
    "dataset", sorted({record["dataset"] for record in score_records()})
)
def test_scores(dataset: str) -> None:
    """Both metrics of every odd output are the official ones, digit for digit, and are absent where the official code
    raises."""
    headline = BY_NAME[dataset].scoring.names[0]
    for record, (expected, second) in zip(score_records(), SCORES, strict=True):
        if record["dataset"] == dataset:
            scores = BY_NAME[dataset].score(record)
            assert scores.keys() <= set(LV_EVAL.task(dataset).metrics)
            assert (scores.get(headline), scores[SECOND[headline]]) == (
                expected,
                second,
            ), record["prediction"][:80]


def test_golden_scores_say_something() -> None:
    """All metrics occur, and some scores are between the ends, some are cut by the gate and some cannot be computed."""
    metrics = {
        BY_NAME[record["dataset"]].scoring.official for record in score_records()
    }
    assert metrics == {dataset.scoring.official for dataset in DATASETS}
    values = [value for row in SCORES for value in row if value is not None]
    assert sum(0 < value < 0.99 for value in values) > 500
    assert sum(first == 0 and second > 0 for first, second in SCORES) > 50
    assert sum(first is None for first, _ in SCORES) > 50


@pytest.mark.parametrize("name", ["byte_level", "metaspace"])
@pytest.mark.parametrize("window", WINDOWS)
def test_cuts(name: str, window: int) -> None:
    """Cut prompts are the official ones at even, odd, tiny and large windows."""
    cut = middle_cutter(tokenizers()[name])
    cuts = [cut(prompt, window) for prompt in truncation_prompts()]
    assert [
        digest(fitted.prompt for fitted in cuts),
        sum(fitted.cut for fitted in cuts),
    ] == GOLDEN["cuts"][f"{name} {window}"]
