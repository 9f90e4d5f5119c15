"""Requests and scores equal the official code's on the same data (golden_makers/leval.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.leval import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.leval.fabricate import DATASETS, build_leval, outputs, rows
from tests.support.fabricate_words import write
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


@pytest.mark.parametrize("task", BENCHMARK.tasks, ids=lambda task: task.name)
def test_requests(task: Task, tmp_path: Path) -> None:
    """Every message, budget and temperature is the official one."""
    settings = Settings(None, num_samples=1000)
    variant = task.variant(settings)
    found = []
    for example in load_examples(
        task, settings, DataRoot(build_leval(tmp_path), mirror=True)
    ):
        messages = [
            dict(message) for message in task.prompt(example, variant.system).messages
        ]
        found.append(
            json.dumps([messages, task.output_tokens(settings), variant.temperature])
        )
    assert digest(found) == GOLDEN["asked"][task.name]


def test_scores() -> None:
    """Every score is the official one, digit for digit."""
    for (name, answer, output), official in zip(
        outputs(), GOLDEN["scores"], strict=True
    ):
        task = BENCHMARK.task(name)
        rights = (
            [part.strip(" ]") for part in answer.lower().split("[fact:")]
            if name == "sci_fi"
            else [answer]
        )
        scores = [
            list(task.score({"prediction": output, "references": [right]}).values())
            for right in rights
        ]
        found = [value for values in scores for value in values]
        assert found == (official if isinstance(official, list) else [official]), (
            name,
            answer,
            output,
        )


def test_cases_say_something() -> None:
    """Every closed task has right and wrong answers, and Coursera some that are partly right."""
    for name in ("tpo", "gsm100", "codeU", "coursera", "topic_retrieval_longchat"):
        scores = [
            score
            for (task, *_), score in zip(outputs(), GOLDEN["scores"], strict=True)
            if task == name
        ]
        assert {0, 1} <= set(scores)
        assert (0.25 in scores) == (name == "coursera") or name == "tpo"


def test_errors(tmp_path: Path) -> None:
    """A row with more questions than answers ends in one line."""
    (dataset, *_) = DATASETS
    write(tmp_path / dataset.source.path, [{**rows(dataset)[0], "outputs": ["A"]}])
    with pytest.raises(
        InputError,
        match=r"row 1 of .*tpo.jsonl: columns 'instructions' and 'outputs' must be lists",
    ):
        list(
            load_examples(
                BENCHMARK.task("tpo"), Settings(None), DataRoot(tmp_path, mirror=True)
            )
        )
