"""Scores of a real model's answers equal those of the official code, which scored the same answers (golden_makers/model_scores.py).

The model is not needed: answers.json has its answers.
"""

from __future__ import annotations

import pytest

from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from tests.golden_makers.model_suites import SUITES
from tests.models.answers.entries import ENTRIES
from tests.models.answers.records import read_records
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
RECORDS = read_records()


@pytest.mark.parametrize("text", ENTRIES)
def test_scores(text: str) -> None:
    """Every score of an entry's answers that the official code computes is the official one."""
    (task,) = parse_entry(BENCHMARKS, text).tasks
    for record, golden in zip(RECORDS[text], GOLDEN[text], strict=True):
        scored = task.scores(record)
        assert {name: scored[name] for name in golden} == pytest.approx(
            golden, rel=0, abs=1e-12
        ), record["id"]


def test_all_suites_have_scores() -> None:
    """Every suite whose official code runs here has scores, and most entries with texts have scores between 0 and 1."""
    assert set(RECORDS) == set(GOLDEN) == set(ENTRIES)
    assert {parse_entry(BENCHMARKS, text).benchmark.name for text in ENTRIES} == {
        *SUITES,
        "helmet",
    }
    assert all(scores for rows in GOLDEN.values() for scores in rows)
    values = [
        value
        for rows in GOLDEN.values()
        for scores in rows
        for value in scores.values()
    ]
    assert sum(0 < value < 1 for value in values) > 80
    assert min(values.count(value) for value in (0.0, 1.0)) > 10
