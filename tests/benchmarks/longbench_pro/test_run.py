"""A run of LongBench Pro from the entry to its statistics, with a local model that answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.run_settings import MIRROR
from helm_longctx.runner import LongContextRunner
from tests.benchmarks.longbench_pro.fabricate import build_longbench_pro
from tests.runner.making import make_run


def test_a_run_of_all_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each question is asked three times; every task has a score, except summaries, whose similarity no model measured."""
    build_longbench_pro(tmp_path / "data")
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))
    run = make_run(
        tmp_path,
        "longbench_pro:length=8k,judge=none,model=longctx/lexical",
        LongContextRunner,
    )
    means = {
        (stat["name"]["name"], stat["name"].get("sub_split")): stat
        for stat in json.loads((run / "stats.json").read_text())
    }
    scored = {task for name, task in means if name == "longctx_score" and task}
    assert len(scored) == 23
    assert not scored & {"t4_1", "t4_2"}
    assert means["rouge_l", "t4_2"]["mean"] >= 0
    state = json.loads((run / "scenario_state.json").read_text())
    assert len(state["request_states"]) == 3 * 25
    assert {
        answered["request"]["temperature"] for answered in state["request_states"]
    } == {1.0}
    assert all(
        answered["result"]["completions"][0]["text"].startswith("[")
        for answered in state["request_states"]
    )
