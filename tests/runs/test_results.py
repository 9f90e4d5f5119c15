"""Tests of a run's files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import Stat
from helm.benchmark.runner import Runner

from helm_longctx.runner import LongContextRunner
from helm_longctx.runs.files import find_incomplete_files
from helm_longctx.runs.helm_files import write_states
from tests.runner.making import ENTRY, PlainClient, make_run


def test_a_file_is_whole_or_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is whole or unchanged, whenever the process ends."""
    path = tmp_path / "stats.json"
    write_states(path, {}, None, [Stat(MetricName("a")).add(1)])
    before = path.read_bytes()
    assert json.loads(before)["request_states"][0]["name"]["name"] == "a"

    def killed(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_states(path, {}, None, [Stat(MetricName("b")).add(1)] * 100)
    assert path.read_bytes() == before


@pytest.mark.parametrize("runner", [LongContextRunner, Runner])
@pytest.mark.parametrize(
    "name", ["run_spec", "scenario", "scenario_state", "stats", "per_instance_stats"]
)
def test_a_cut_file_is_not_complete(
    name: str, runner: type[Runner], tmp_path: Path
) -> None:
    """A run whose files lack their end is not complete, so that `--skip-completed-runs` repeats it and skips whole runs."""
    run = made(tmp_path, runner)
    path = run / f"{name}.json"
    whole = path.read_bytes()
    assert find_incomplete_files(run) == []
    for end in (0, 1, len(whole) // 2, whole.rindex(b"\n", 0, -3), len(whole) - 1):
        path.write_bytes(whole[:end])
        assert find_incomplete_files(run) == [path.name]
    path.write_bytes(whole[:-4096] + bytes(4096))  # what a power failure may leave
    assert find_incomplete_files(run) == [path.name]
    asked = len(PlainClient.asked)
    made(tmp_path, LongContextRunner, skip_completed_runs=True)
    assert len(PlainClient.asked) == asked + 3
    made(tmp_path, LongContextRunner, skip_completed_runs=True)
    assert len(PlainClient.asked) == asked + 3


def made(folder: Path, runner: type[Runner], **flags: bool) -> Path:
    return make_run(
        folder,
        ENTRY.replace("length", "task=json_kv,length") + "test/plain",
        runner,
        **flags,
    )
