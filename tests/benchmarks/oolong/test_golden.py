"""Requests and scores equal the official code's, which was run on the same rows (golden_makers/oolong.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.oolong.data import LABELLED_TEXT, TEXT, read_answers
from helm_longctx.benchmarks.oolong.tasks import OOLONG, TEST
from helm_longctx.data.jsonl import FileRow
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.oolong.fabricate import (
    build_oolong,
    real_rows,
    score_cases,
    synth_rows,
)
from tests.golden_makers.oolong import LENGTH, digest_request
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_oolong(tmp_path_factory.mktemp("oolong")), mirror=True)


def _turns(task: Task, root: DataRoot, settings: Settings) -> list[list[list[str]]]:
    prompts = [task.prompt(example) for example in load_examples(task, settings, root)]
    return [
        [[turn["role"], turn["content"]] for turn in prompt.messages]
        for prompt in prompts
    ]


@pytest.mark.parametrize("name", GOLDEN["requests"])
def test_requests(name: str, root: DataRoot) -> None:
    """With `protocol=api`, the roles and texts of every request are the official ones."""
    names = (
        ["dnd"]
        if name == "real"
        else [each + name.removeprefix("synth") for each in TEST]
    )
    tasks = [OOLONG.task(name) for name in names]
    lengths = tasks[0].sizes if name == "real" else (LENGTH,)
    ours = [
        turns
        for task in tasks
        for n in lengths
        for turns in _turns(task, root, Settings(n, protocol="api"))
    ]
    assert sorted(map(digest_request, ours)) == GOLDEN["requests"][name]


def test_the_default_is_the_input_of_the_cards(root: DataRoot) -> None:
    """By default a prompt is one user turn: the text, a line break and the question."""
    for names, column in (
        (TEST, TEXT),
        ([f"{name}_labels" for name in TEST], LABELLED_TEXT),
    ):
        turns = [
            turn
            for name in names
            for turn in _turns(OOLONG.task(name), root, Settings(LENGTH))
        ]
        assert turns == [
            [["user", f"{row[column]}\n{row['question']}"]]
            for row in synth_rows(LENGTH)
        ]
    dnd = OOLONG.task("dnd")
    turns = [
        turn for length in dnd.sizes for turn in _turns(dnd, root, Settings(length))
    ]
    assert turns == [
        [["user", f"{row[TEXT]}\n{row['question']}"]] for row in real_rows()
    ]


def test_scores() -> None:
    """Every odd output has the official score; where the official code fails, the score is 0."""
    synth = OOLONG.task("agnews")
    real = OOLONG.task("dnd")
    for case, official in zip(score_cases(), GOLDEN["scores"], strict=True):
        record = {
            "prediction": case["output"],
            "answer_type": case["answer_type"],
            "references": [case["answer"]],
        }
        if case["synth"]:
            record["references"] = read_answers(FileRow(case, Path("x"), 1))[:1]
        scores = (synth if case["synth"] else real).scores(record)
        assert scores["credit"] == (0 if isinstance(official, str) else official), case
        assert scores["exact"] == (official == 1)
    numbers = [score for score in GOLDEN["scores"] if not isinstance(score, str)]
    assert numbers.count(1) > 300
    assert sum(0 < score < 1 for score in numbers) > 300
    assert {"IndexError", "OverflowError"} <= {*GOLDEN["scores"]}
