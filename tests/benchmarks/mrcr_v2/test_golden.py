"""Prompts and scores equal the official code's, which was run on the same data (golden_makers/mrcr_v2.py)."""

from __future__ import annotations

import hashlib
import json
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
from tests.benchmarks.mrcr_v2.fabricate import ROWS, SEEDS, build_mrcr_v2, records, rows


def fingerprint(prompt: str, temperature: float) -> str:
    """Return the short form of a request in the golden file."""
    return f"{temperature} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_prompts(seed: int, tmp_path: Path) -> None:
    """Every prompt and the order are the official ones, also in cumulative files, and the lexical baseline finds every
    answer."""
    golden = json.loads(
        (Path(__file__).parent / "golden.json").read_text(encoding="utf-8")
    )["asked"]
    root = DataRoot(build_mrcr_v2(tmp_path, seed), mirror=True)
    for task in BENCHMARK.tasks:
        needles, _, cumulative = task.argument.partition("_")
        settings = Settings(CUMULATIVE if cumulative else LENGTHS["8k"])
        examples = list(load_examples(task, settings, root))
        prompts = [task.prompt(example) for example in examples]
        found = [
            fingerprint(prompt.user_turn, task.variant(settings).temperature)
            for prompt in prompts
        ]
        assert found == golden[f"{needles} {seed}"]
        assert all(prompt.has_one_turn for prompt in prompts)
        for example, row in zip(examples, rows(int(needles), seed), strict=True):
            assert find_answer(example.messages) == row["answer"]
            start, _ = row["answer_context_position"]
            assert example.depth == start / row["context_len"]
            assert example.input_tokens == row["context_len"]


def test_scores() -> None:
    """Every score is the official one, digit for digit; some scores are 0, some are 1, and many are between them."""
    golden = json.loads(
        (Path(__file__).parent / "golden.json").read_text(encoding="utf-8")
    )["scores"]
    scores = [score(record)["score"] for record in records()]
    assert scores == golden
    assert {0.0, 1.0} < set(scores)
    assert sum(0 < value < 1 for value in scores) > 100
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
    """Files are named as in the official script, and the cumulative ones exist at one length."""
    name = "mrcr_v2p1_4needle_in_(65536,131072)_dynamic_fewshot_text_style_fast.csv"
    assert file_of(4, LENGTHS["128k"]).name == name
    entry = parse_entry([BENCHMARK], "mrcr_v2:needles=8_upto,length=128k")
    assert "8needle_upto_128K" in entry.tasks[0].paths(entry.settings.length)[0]
    with pytest.raises(InputError, match="length"):
        parse_entry([BENCHMARK], "mrcr_v2:needles=8_upto,length=8k")


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
