"""Tests of the end of the runner's log: scores, failed requests and the next command, only for our runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.scenarios.scenario import ScenarioSpec

from helm_longctx.results.boards import read_suite
from helm_longctx.results.cells import notes
from helm_longctx.runner import score_log
from helm_longctx.runner.score_log import log_scores
from helm_longctx.tasks.registry import BENCHMARKS
from tests.runner.making import ENTRY, PlainClient, make_run, make_runner, read

PLAIN = ENTRY + "test/plain"


def log_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().strip() for record in caplog.records]


def test_the_log_ends_with_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log ends with the mean of the tasks' scores, the failed requests, and a command to copy."""
    monkeypatch.setattr(
        PlainClient,
        "fails",
        staticmethod(lambda prompt: prompt == max(PlainClient.asked)),
    )
    caplog.set_level(logging.INFO, "helm")
    run = make_run(tmp_path, PLAIN)
    scores = [
        stat["mean"]
        for stat in read(run, "stats")
        if stat["name"]["name"] == "longctx_score"
    ]
    *_, head, row, command = log_of(caplog)
    assert head == "score  95 % interval  instances  failed  run"
    row, reason = row.split("  † ")
    assert reason.startswith("generated questions")
    score, ends, answers, failed, name = row.split()
    low, high = ends.split("–")
    assert float(score) == pytest.approx(100 * sum(scores) / len(scores), abs=0.06)
    assert float(low) < float(score) <= float(high)
    assert int(answers) + int(failed) == 12
    assert int(failed) > 0
    assert name == run.name
    summarize = f"helm-longctx summarize --suite s -o {tmp_path / 'benchmark_output'}"
    assert (
        command
        == f"Next: {summarize} (helm-summarize shows these scores only with a schema of `helm-longctx schema`)"
    )


def _notes(suite: Path) -> list[str]:
    return list(notes(read_suite(suite, BENCHMARKS).boards))


def test_generated_questions_are_named(tmp_path: Path) -> None:
    """Two lines below the printed scores name the tasks with generated questions, and the command for others."""
    run = make_run(tmp_path, PLAIN)
    tasks = "json_kv, ruler_niah_mk_2, ruler_niah_mk_3, ruler_niah_mv"
    assert (
        _notes(run.parent)[-2]
        == f"Generated questions, not the benchmarks' own: {tasks}"
    )
    assert "helm-longctx fetch helmet_recall:length=" in _notes(run.parent)[-1]
    for stats in run.parent.glob("*/stats.json"):
        stats.write_text(stats.read_text().replace("generated_data", "other"))
    assert not any("enerated" in line for line in _notes(run.parent))


def test_many_runs_and_damaged_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The table has a few rows and a count of the others, and a damaged run costs only its own row."""
    run = make_run(tmp_path, PLAIN)
    (run.parent / "damaged").mkdir()
    (run.parent / "damaged" / "stats.json").write_text("[")
    monkeypatch.setattr(score_log, "_ROWS", 2)
    caplog.set_level(logging.INFO, "helm")
    caplog.clear()
    log_scores(
        tmp_path / "benchmark_output", "s", ["absent", "damaged", run.name, run.name]
    )
    _, damaged, row, more = log_of(caplog)
    assert "damaged/run_spec.json" in damaged
    assert row.partition("  † ")[0].endswith(run.name)
    assert more == "and 1 more"


def test_runs_of_other_scenarios(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Runs of other scenarios have only HELM's log."""
    caplog.set_level(logging.INFO, "helm")
    runner = make_runner(tmp_path)
    runner.run_one = lambda run_spec: None
    runner.run_all(
        [
            RunSpec(
                "other",
                ScenarioSpec("other.Scenario"),
                AdapterSpec(method="generation"),
                metric_specs=[],
            )
        ]
    )
    assert not any("summarize" in line for line in log_of(caplog))
