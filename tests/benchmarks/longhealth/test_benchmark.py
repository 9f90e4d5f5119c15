"""Documents, samples, the baseline and faulty rows of LongHealth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longhealth import BENCHMARK, tasks
from helm_longctx.benchmarks.longhealth.tasks import choose_option
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.counting import make_codec
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longhealth.fabricate import (
    SEEDS,
    build_longhealth,
    patients,
    tokenizer,
)

TASK1, TASK2, TASK3 = BENCHMARK.tasks


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    """Return a folder with the patients of the first seed."""
    build_longhealth(tmp_path)
    return DataRoot(tmp_path, mirror=True)


def settings(name: str = "tiktoken", **given: Any) -> Settings:
    """Return the settings of an entry with a tokenizer."""
    return Settings(None, codec=make_codec(tokenizer(name)), **given)


def test_settings_of_the_tasks(root: DataRoot) -> None:
    """The first task shows documents of the patient, the third shows documents of other patients, and the second shows
    both, among them all documents with the answer."""
    content = patients(SEEDS[0])
    for task, letters in (
        (TASK1, set("ABCDE")),
        (TASK2, set("ABCDEF")),
        (TASK3, {"F"}),
    ):
        for example in load_examples(task, settings(), root):
            own = content[example.group]["texts"]
            asked = content[example.group]["questions"][int(example.id.split("-")[1])]
            shown = example.fields["context"].split("\n\n--------------\n\n")
            with_answer = {own[name] for name in asked["answer_location"]}
            assert set(example.references) <= letters
            assert with_answer <= set(shown) or task is TASK3
            assert (set(shown) <= set(own.values())) == (task is TASK1)
            assert not with_answer & set(shown) or task is not TASK3


def test_seed_and_sample(root: DataRoot) -> None:
    """Another seed gives other orders of the same questions, and a sample is the first prompts."""
    one, other = (
        list(load_examples(TASK1, settings(seed=seed), root)) for seed in (1, 2)
    )
    assert [record.id for record in one] == [record.id for record in other]
    assert [record.fields["context"] for record in one] != [
        record.fields["context"] for record in other
    ]
    few = list(load_examples(TASK1, settings(seed=1, num_samples=7), root))
    assert few == one[:7]
    assert TASK1.num_samples == 2000


def test_baseline_and_errors(root: DataRoot) -> None:
    """The baseline names an option of each prompt, a missing tokenizer is an error, and a faulty row ends in one
    line."""
    for example in load_examples(TASK2, settings(), root):
        output = choose_option(
            TASK2.prompt(example, TASK2.variant(settings()).system).messages
        )
        assert output is not None
        letter, text = output.removeprefix("The correct answer is ").split(": ", 1)
        assert f"{letter}: {text}" in example.fields["options"].splitlines()
    assert choose_option([{"role": "user", "content": "A: x"}]) is None
    with pytest.raises(InputError, match=r"task1: no tokenizer .* count_with="):
        list(load_examples(TASK1, Settings(None), root))
    content = patients(SEEDS[0])
    del content["patient_02"]["questions"][1]["correct"]
    (root / tasks.SOURCE.path).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"benchmark_v5.json does not have task1's format: KeyError 'correct'",
    ):
        list(load_examples(TASK1, settings(), root))
