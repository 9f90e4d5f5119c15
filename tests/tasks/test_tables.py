"""Tests that the tables of benchmarks say what they said when somebody last looked at a change."""

from __future__ import annotations

import json

import pytest

from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.tables import TABLES, describe_benchmark

STORED = json.loads(TABLES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_facts_of_tasks_are_fixed(benchmark: Benchmark) -> None:
    """Sizes, limits, samples, metrics and data of each task are those of the file, because another number is another score.

    If a change is meant, `python -m tests.golden_makers tables` writes the file again.
    """
    stored = STORED.get(benchmark.name, {})
    # Facts are compared as the file has them.
    facts = json.loads(json.dumps(describe_benchmark(benchmark)))
    changed = {name: facts[name] for name in facts if facts[name] != stored.get(name)}
    assert changed == {}
    assert list(facts) == list(stored)


def test_every_benchmark_is_in_the_file() -> None:
    """The file has each benchmark and no other."""
    assert set(STORED) == {benchmark.name for benchmark in BENCHMARKS}
