"""Scores by instance, of runs of any kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.runs.scores import read_scores

OLD_RUN = Path(__file__).parent / "old_run.zip"


@pytest.fixture
def old_run(tmp_path: Path) -> Path:
    """A judged run of an earlier version."""
    shutil.unpack_archive(OLD_RUN, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_of_an_earlier_version(old_run: Path) -> None:
    """Its loader gave no groups, and its questions have no depth: each is its own."""
    rows = read_scores(old_run)
    assert [(row.instance, row.repeat, row.score) for row in rows] == [("narrativeqa-0", 0, 1), ("narrativeqa-1", 0, 1)]
    assert {(row.entry, row.task, row.length, row.judge) for row in rows} == {
        ("helmet_longqa", "narrativeqa", 8192, "tests/plain")
    }
    assert [row.group for row in rows] == ["narrativeqa: narrativeqa-0", "narrativeqa: narrativeqa-1"]
    assert all(row.values["judge_score"] == 1 and not row.failure for row in rows)
    assert [row.score for row in read_scores(old_run, metric="f1")] == [0, 0]


def test_a_damaged_run(old_run: Path) -> None:
    """It is named."""
    (old_run / "per_instance_stats.json").write_text("[{}]")
    with pytest.raises(InputError, match=r"per_instance_stats.json cannot be read"):
        read_scores(old_run)
