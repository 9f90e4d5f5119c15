"""The default prompts of Oolong are the inputs of model cards."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.oolong.data import LABELLED_TEXT, TEXT
from helm_longctx.benchmarks.oolong.tasks import OOLONG, TEST
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.oolong.fabricate import build_oolong, real_rows, synth_rows
from tests.golden_makers.oolong import LENGTH


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_oolong(tmp_path_factory.mktemp("oolong")), mirror=True)


def _turns(task: Task, root: DataRoot, settings: Settings) -> list[list[list[str]]]:
    prompts = [task.prompt(example) for example in load_examples(task, settings, root)]
    return [
        [[turn["role"], turn["content"]] for turn in prompt.messages]
        for prompt in prompts
    ]


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
