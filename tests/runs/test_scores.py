"""Tests of scores by instance, of runs of any kind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.runs.scores import read_scores

OLD_RUN = Path(__file__).parent / "old_run.zip"


@pytest.fixture
def old_run(tmp_path: Path) -> Path:
    """Unpack a judged run of an earlier version, and return its folder."""
    shutil.unpack_archive(OLD_RUN, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_of_an_earlier_version(old_run: Path) -> None:
    """A run of an earlier version has no groups and no depths, so each question is its own group."""
    rows = read_scores(old_run)
    assert [(row.instance, row.repeat, row.score) for row in rows] == [
        ("narrativeqa-0", 0, 1),
        ("narrativeqa-1", 0, 1),
    ]
    assert {(row.entry, row.task, row.length) for row in rows} == {
        ("helmet_longqa", "narrativeqa", 8192)
    }
    assert [row.group for row in rows] == [
        "narrativeqa: narrativeqa-0",
        "narrativeqa: narrativeqa-1",
    ]
    assert all(row.values["judge_score"] == 1 and not row.failure for row in rows)
    assert [row.score for row in read_scores(old_run, metric="f1")] == [0, 0]


def test_a_run_of_helm(old_run: Path) -> None:
    """The score of HELM's own run is the main metric in HELM's schema files, on the split that they name."""
    for name, words in {
        "run_spec": (
            ('"entry": "helmet_longqa",', ""),
            ("helmet_longqa_8k", "ruler_squad"),
        ),
        "per_instance_stats": (
            ("longctx_score", "ruler_string_match_part"),
            ('"test"', '"valid"'),
        ),
        "scenario_state": (
            ('"max_tokens"', '"most_tokens"'),  # no sample of ours
            ('"split": "test"', '"split": "valid"'),
        ),
    }.items():
        path = old_run / f"{name}.json"
        text = path.read_text()
        for old, new in words:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
    rows = read_scores(old_run)
    assert [row.score for row in rows] == [1, 1]
    assert {(row.entry, row.length, row.depth) for row in rows} == {
        ("helmet_longqa", None, None)
    }


def test_groups_and_failures(old_run: Path) -> None:
    """A group is the sample's one or the question alone, and a request without an answer has no score.

    Only the group of a text has the same name in all tasks.
    """
    path = old_run / "scenario_state.json"
    content = json.loads(path.read_text())
    content["request_states"][0]["instance"]["extra_data"]["group"] = "text 1"
    content["request_states"][1]["instance"]["extra_data"]["depth"] = 0.5
    again = {**content["request_states"][0], "train_trial_index": 1}
    content["request_states"].append(again)
    path.write_text(json.dumps(content, indent=2))
    stats = old_run / "per_instance_stats.json"
    rows = json.loads(stats.read_text())
    rows[1]["stats"] = [
        {
            "name": {"name": name, "split": "test", "sub_split": "narrativeqa"},
            "mean": 1.0,
        }
        for name in ("request_refused", "prompt_tokens")
    ]
    rows.append({**rows[0], "train_trial_index": 1})
    stats.write_text(json.dumps(rows))
    one, other, again = read_scores(old_run)
    assert (one.group, again.group, again.repeat) == ("text 1", "text 1", 1)
    assert other.group == "narrativeqa: narrativeqa-1"
    assert other.depth == 0.5
    assert (other.score, other.failure, other.tokens) == (None, "request_refused", 1)


def test_a_damaged_run(old_run: Path) -> None:
    """An error names the damaged file of a run."""
    (old_run / "per_instance_stats.json").write_text("[{}]")
    with pytest.raises(InputError, match=r"per_instance_stats.json cannot be read"):
        read_scores(old_run)
