"""Inputs and scores equal the official code's on the same stories (golden_makers/squality.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.squality import BENCHMARK
from helm_longctx.benchmarks.squality.tasks import SOURCE
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.squality.fabricate import build_squality, records, rows
from tests.support.fabricate_words import write
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
(TASK,) = BENCHMARK.tasks


def test_inputs(tmp_path: Path) -> None:
    """Every input is the official one, and the questions on a story are a group."""
    examples = list(
        load_examples(
            TASK, Settings(None), DataRoot(build_squality(tmp_path), mirror=True)
        )
    )
    assert (
        digest(TASK.prompt(example).messages[0]["content"] for example in examples)
        == GOLDEN["inputs"]
    )
    assert len({example.group for example in examples}) == len(examples) / 5


def test_scores() -> None:
    """Every score is the official one, digit for digit, and the best summary differs between kinds of ROUGE."""
    for (references, output), official in zip(records(), GOLDEN["scores"], strict=True):
        assert [
            *TASK.score({"prediction": output, "references": references}).values()
        ] == official
    assert TASK.score({"prediction": "none", "references": ["A story."]}) == {
        "rouge1": 0,
        "rouge2": 0,
        "rougeL": 0,
    }


def test_faulty_row(tmp_path: Path) -> None:
    """A question without its summaries ends in one line."""
    write(
        tmp_path / SOURCE.path,
        [{**rows()[0], "questions": [{"question_text": "Who?", "responses": [{}]}]}],
    )
    with pytest.raises(
        InputError,
        match=r"row 1 of .*test.jsonl: a story needs passage_id, .* \('response_text'\)",
    ):
        list(load_examples(TASK, Settings(None), DataRoot(tmp_path, mirror=True)))
