"""Samples, lengths, faulty rows and baselines of GSM-Infinite."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.gsm_infinite import BENCHMARK, tasks
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.gsm_infinite.fabricate import build_gsm_infinite, rows
from tests.support.fabricate_words import write

SYMBOLIC, MEDIUM, HARD = BENCHMARK.tasks


def draw(root: Path, **given: int) -> list[Example]:
    """Return the examples of the symbolic task with the given settings."""
    return list(load_examples(SYMBOLIC, Settings(**given), DataRoot(root, mirror=True)))


def test_samples_have_all_operations(tmp_path: Path) -> None:
    """A small sample of hard problems has problems of every number of operations."""
    root = DataRoot(build_gsm_infinite(tmp_path), mirror=True)
    few = load_examples(HARD, Settings(0, num_samples=40), root)
    operations = {int(example.id.split("-")[0]) for example in few}
    assert operations >= set(range(2, 22))


def test_lengths(tmp_path: Path) -> None:
    """Problems without noise have only their own variables, and longer ones as many statements as the official script."""
    (short, *_) = draw(tmp_path, length=0, num_samples=50)
    assert short.fields["context"].count("assign") == 1
    (long, *_) = draw(tmp_path, length=131072, num_samples=10)
    # The noise is a tree of its own, whose root has no statement.
    assert long.fields["context"].count("assign") == int(
        tasks.official_tokens(131072) * 828 / 9668
    )
    assert [
        SYMBOLIC.official_sample(Settings(length))
        for length in (0, 8192, 5000, 9_000_000)
    ] == [
        5000,
        3000,
        1000,
        1000,
    ]
    assert [tasks.official_tokens(length) for length in (8192, 1 << 20, 5000)] == [
        8000,
        1_024_000,
        5000,
    ]


def test_faulty_row(tmp_path: Path) -> None:
    """A solution without a number ends in one line."""
    build_gsm_infinite(tmp_path)
    (path, *_) = MEDIUM.paths(8192)
    faulty = [{**row, "solution": "Answer: many."} for row in rows("ops_2")]
    write(tmp_path / path, faulty)
    with pytest.raises(
        InputError, match=r"row 1 of .*ops_2.jsonl: column 'solution' has no number"
    ):
        list(load_examples(MEDIUM, Settings(8192), DataRoot(tmp_path, mirror=True)))


def test_baselines(tmp_path: Path) -> None:
    """The baselines answer their own problems, and no others."""
    (example, *_) = draw(tmp_path, length=0, num_samples=50)
    assert SYMBOLIC.baseline
    assert MEDIUM.baseline
    assert callable(SYMBOLIC.baseline.kind)
    assert callable(MEDIUM.baseline.kind)
    answer = SYMBOLIC.baseline.kind(SYMBOLIC.prompt(example).messages)
    assert answer == f"The variables are {example.references[0]}."
    assert SYMBOLIC.baseline.kind([{"role": "user", "content": "x"}]) is None
    assert (
        MEDIUM.baseline.kind([{"role": "user", "content": "1 and 2. Solution:"}])
        == "Answer: 2."
    )
