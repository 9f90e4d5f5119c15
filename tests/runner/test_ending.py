"""The end of the runner's log: scores, failed requests and the next command, for our runs alone."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioSpec

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.report.suite import notes
from helm_longctx.running import ending
from helm_longctx.running.ending import log_scores
from tests.running.making import ENTRY, PlainClient, make_run, make_runner, read

PLAIN = ENTRY + "test/plain"


def log_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().strip() for record in caplog.records]


def test_the_log_ends_with_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The score is the mean of the tasks' scores; the failed request is counted; the command can be copied."""
    monkeypatch.setattr(PlainClient, "fails", staticmethod(lambda prompt: prompt == max(PlainClient.asked)))
    caplog.set_level(logging.INFO, "helm")
    run = make_run(tmp_path, PLAIN)
    scores = [stat["mean"] for stat in read(run, "stats") if stat["name"]["name"] == "longctx_score"]
    *_, head, row, command = log_of(caplog)
    assert head == "score  95 % interval     answers  failed  run"
    score, low, _, high, answers, failed, name = row.split()
    assert float(score) == pytest.approx(sum(scores) / len(scores), abs=6e-4)
    assert float(low) < float(score) <= float(high)
    assert int(answers) + int(failed) == 12
    assert int(failed) > 0
    assert name == run.name
    assert command == f"Next: helm-longctx summarize --suite s -o {tmp_path / 'benchmark_output'}"


def test_generated_data_is_named(tmp_path: Path) -> None:
    """One line below the printed scores names the tasks whose data was generated."""
    run = make_run(tmp_path, PLAIN)
    tasks = "json_kv, ruler_niah_mk_2, ruler_niah_mk_3, ruler_niah_mv"
    assert list(notes(run.parent, BENCHMARKS)) == [f"Generated data, not official files: {tasks}"]
    for stats in run.parent.glob("*/stats.json"):
        stats.write_text(stats.read_text().replace("generated_data", "other"))
    assert list(notes(run.parent, BENCHMARKS)) == []


def test_many_runs_and_damaged_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There are some rows and a count of the others. A damaged run costs its own row, a missing one nothing."""
    run = make_run(tmp_path, PLAIN)
    (run.parent / "damaged").mkdir()
    (run.parent / "damaged" / "stats.json").write_text("[")
    monkeypatch.setattr(ending, "ROWS", 2)
    caplog.set_level(logging.INFO, "helm")
    caplog.clear()
    log_scores(tmp_path / "benchmark_output", "s", ["absent", "damaged", run.name, run.name])
    _, damaged, row, more, _ = log_of(caplog)
    assert "damaged/run_spec.json" in damaged
    assert row.endswith(run.name)
    assert more == "and 1 more"


def test_runs_of_other_scenarios(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Their log is HELM's."""
    caplog.set_level(logging.INFO, "helm")
    runner = make_runner(tmp_path)
    runner.run_one = lambda run_spec: None
    runner.run_all(
        [RunSpec("other", ScenarioSpec("other.Scenario"), AdapterSpec(method="generation"), metric_specs=[])]
    )
    assert not any("summarize" in line for line in log_of(caplog))
