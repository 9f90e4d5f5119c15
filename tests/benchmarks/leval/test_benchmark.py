"""Faulty rows of L-Eval."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.leval import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.leval.fabricate import DATASETS, rows
from tests.support.fabricate_words import write


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
