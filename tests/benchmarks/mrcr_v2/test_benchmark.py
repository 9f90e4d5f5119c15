"""Places of answers, floors, files and faulty rows of MRCR v2."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from helm_longctx.benchmarks.mrcr_v2 import BENCHMARK
from helm_longctx.benchmarks.mrcr_v2.tasks import (
    CUMULATIVE,
    LENGTHS,
    NEEDLES,
    file_of,
    find_answer,
    score,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.mrcr_v2.fabricate import ROWS, SEEDS, build_mrcr_v2, rows


@pytest.mark.parametrize("seed", SEEDS)
def test_places_of_answers(seed: int, tmp_path: Path) -> None:
    """The lexical baseline finds every answer, and each example knows its depth and length, also in cumulative files."""
    root = DataRoot(build_mrcr_v2(tmp_path, seed), mirror=True)
    for task in BENCHMARK.tasks:
        needles, _, cumulative = task.argument.partition("_")
        settings = Settings(CUMULATIVE if cumulative else LENGTHS["8k"])
        examples = load_examples(task, settings, root)
        for example, row in zip(examples, rows(int(needles), seed), strict=True):
            assert task.prompt(example).has_one_turn
            assert find_answer(example.messages) == row["answer"]
            start, _ = row["answer_context_position"]
            assert example.depth == start / row["context_len"]
            assert example.input_tokens == row["context_len"]


def test_a_record_without_an_answer_has_no_score() -> None:
    """A record without the official answer is not scored."""
    assert score({"prediction": "x"}) == {}


def test_floors_are_rows_of_every_length() -> None:
    """The published scores have the floors of a model that repeats a reply at random, at every length."""
    floors = {
        (row.model.rpartition(" ")[2], row.length): row.scores
        for row in BENCHMARK.published()
    }
    assert floors["request", LENGTHS["1m"]] == {
        "2needle": 0.51,
        "4needle": 0.27,
        "8needle": 0.15,
    }
    assert floors["transcript", LENGTHS["8k"]]["8needle"] == 0.01
    assert len(floors) == 2 * len(LENGTHS)


def test_addresses_and_lengths() -> None:
    """Files are named as in the official script, and the cumulative ones are named after their length."""
    name = "mrcr_v2p1_4needle_in_(65536,131072)_dynamic_fewshot_text_style_fast.csv"
    assert file_of(4, LENGTHS["128k"]).name == name
    entry = parse_entry([BENCHMARK], "mrcr_v2:needles=8_upto,length=128k")
    assert "8needle_upto_128K" in entry.tasks[0].paths(entry.settings.length)[0]


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("queries", "", "column 'queries' must be text"),
        ("context_len", "many", "must be a number and a pair"),
        ("answer_context_position", "5", "must be a number and a pair"),
    ],
)
def test_a_malformed_row_is_one_line(
    column: str, value: str, what: str, tmp_path: Path
) -> None:
    path = build_mrcr_v2(tmp_path) / file_of(NEEDLES[0], LENGTHS["8k"]).path
    table = pd.read_csv(path, dtype=str)
    table.loc[ROWS - 1, column] = value
    table.to_csv(path, index=False)
    with pytest.raises(InputError, match=rf"row {ROWS}: .*{what}"):
        list(
            load_examples(
                BENCHMARK.tasks[0],
                Settings(LENGTHS["8k"]),
                DataRoot(tmp_path, mirror=True),
            )
        )
