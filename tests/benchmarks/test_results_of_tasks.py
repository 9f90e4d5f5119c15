"""Tests that tasks make of fabricated data what they made when somebody last looked at a change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.task_results import (
    LEFT_OUT,
    RESULTS,
    build_data,
    describe_results,
    list_described,
)

STORED = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


@pytest.mark.parametrize(
    "benchmark", list_described(), ids=lambda benchmark: benchmark.name
)
def test_results_of_tasks_are_fixed(
    benchmark: Benchmark, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Examples, answers of baselines and scores of many outputs are those of the file.

    If a change is meant, `python -m tests.golden_makers results` writes the file again.
    """
    if build_data(benchmark, tmp_path):
        root = DataRoot(tmp_path, mirror=True)
    else:
        root = request.getfixturevalue("mirror")
    results = describe_results(benchmark, root)
    assert results
    assert results == STORED.get(benchmark.name)


def test_every_benchmark_is_in_the_file() -> None:
    """The file has each benchmark that is not left out."""
    names = {benchmark.name for benchmark in BENCHMARKS}
    assert names - STORED.keys() == LEFT_OUT.keys()
    assert STORED.keys() <= names
