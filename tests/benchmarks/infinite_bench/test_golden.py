"""Prompts, answers and scores equal the official code's, which was run on the same data (golden_makers/infinite_bench.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.infinite_bench.tasks import (
    INFINITE_BENCH,
    ROWS,
    read_answers,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.infinite_bench.fabricate import (
    ROWS_OF_TASK,
    build_infinite_bench,
    score_cases,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SUFFIX = {"gpt4": "", "yarn-mistral": "_base", "claude2": "_claude"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_infinite_bench(tmp_path_factory.mktemp("infinite_bench"))


@pytest.mark.parametrize("model", SUFFIX)
@pytest.mark.parametrize("name", ROWS)
def test_prompts_and_answers(name: str, model: str, root: Path) -> None:
    """Every prompt, with its roles and system message, and every answer is the official one."""
    task = INFINITE_BENCH.task(name + SUFFIX[model])
    settings = Settings(None)
    examples = list(load_examples(task, settings, DataRoot(root, mirror=True)))
    assert len(examples) == ROWS_OF_TASK
    prompts = [
        task.prompt(example, task.variant(settings).system) for example in examples
    ]
    texts = [
        turn[key]
        for prompt in prompts
        for turn in prompt.messages
        for key in ("role", "content")
    ]
    assert digest(texts) == GOLDEN["prompts"][f"{name} {model}"]
    official = [read_answers(name, answer, "") for answer in GOLDEN["answers"][name]]
    assert [example.references for example in examples] == official


@pytest.mark.parametrize(
    ("scorer", "key"),
    [("2024-06", "scores"), ("2024-08", "scores_later"), ("", "scores_later")],
)
def test_scores(scorer: str, key: str) -> None:
    """Every odd output has the score of the official code of that date; where that fails, the score is 0."""
    ours = []
    for case in score_cases():
        names = [case["task"]] + (
            ["math_calc_base"] if case["task"] == "math_calc" else []
        )
        for name in names:
            task = INFINITE_BENCH.task(name)
            record = {
                "prediction": case["output"],
                "references": read_answers(case["task"], case["label"], ""),
                **task.record_fields(Settings(None, scorer=scorer)),
            }
            ours.append(task.scores(record)["longctx_score"])
    official = [0 if score == "ValueError" else score for score in GOLDEN[key]]
    assert ours == official
    assert 100 < GOLDEN[key].count(1.0) < len(official) - 100
    assert "ValueError" in GOLDEN[key]
    assert GOLDEN["scores"] != GOLDEN["scores_later"]
