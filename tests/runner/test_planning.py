"""Tests of what a planned sample can detect, from published scores and from earlier runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helm_longctx.benchmarks.helmet import BENCHMARK as HELMET
from helm_longctx.cli.main import app
from helm_longctx.errors import InputError
from helm_longctx.results.statistics.comparison import compare_pairs
from helm_longctx.runner.estimate import TaskSample
from helm_longctx.runner.planning import (
    detectable_overall,
    find_spreads,
    make_plans,
    read_spreads,
)
from tests.runner import making
from tests.support.estimates import estimate

ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=40,model=longctx/lexical,model_deployment="


def test_published_scores_give_the_variance() -> None:
    """The variance is the largest of right and wrong answers with the published scores, or else the largest of all."""
    rows = [
        row.scores
        for row in HELMET.published()
        if (row.category, row.length) == ("recall", 8192)
    ]
    scores = [row.get("json_kv", row.get("", 0.0)) for row in rows]
    spreads = find_spreads(TaskSample("helmet_recall", "json_kv", 8192, 100, 100), {})
    expected = max(score * (1 - score) for score in scores)
    assert spreads.unpaired.variance == pytest.approx(expected)
    assert (spreads.paired, spreads.source) == (None, "published scores")
    other = find_spreads(TaskSample("my_entry", "", None, 100, 20), {})
    assert other.unpaired.variance == 0.25
    assert other.source == "the largest possible variance"


def test_the_sample_of_a_run(tmp_path: Path) -> None:
    """A question at three depths is one cluster, and repeats are one question."""
    estimates = estimate(
        tmp_path,
        making.ENTRY.replace("num_samples=3", "num_samples=3,repeats=2") + "test/plain",
    )
    assert estimates.requests == 24
    assert {
        (sample.questions, sample.clusters, sample.cluster_size)
        for sample in estimates.samples
    } == {(3, 3, 1.0)}
    assert [sample.task for sample in estimates.samples] == [
        "json_kv",
        "ruler_niah_mk_2",
        "ruler_niah_mk_3",
        "ruler_niah_mv",
    ]
    (first, *_) = plans = make_plans([estimates], {}, 0.1)
    assert first.needed > 3
    assert first.dollars is None
    assert detectable_overall(plans, {})[0] < first.unpaired


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Make runs of two models on the same 40 questions, of which one model answers a quarter wrong."""
    making.make_run(tmp_path, ENTRY + "test/plain")
    run = making.make_run(tmp_path, ENTRY + "test/cached")
    spec = json.loads((run / "run_spec.json").read_text())
    spec["adapter_spec"]["model"] = "test/other"
    (run / "run_spec.json").write_text(json.dumps(spec))
    path = run / "per_instance_stats.json"
    rows = json.loads(path.read_text())
    for number, row in enumerate(rows):
        for stat in row["stats"]:
            if stat["name"]["name"] == "longctx_score":
                stat.update(sum=float(number % 4 > 0), mean=float(number % 4 > 0))
    path.write_text(json.dumps(rows))
    return run.parent


def test_earlier_runs_give_the_spread(suite: Path, tmp_path: Path) -> None:
    """The detected difference agrees with the interval of the difference in earlier runs."""
    known = read_spreads(suite)
    estimates = estimate(tmp_path / "estimate", ENTRY + "test/plain")
    (plan,) = make_plans([estimates], known, 0.05)
    assert plan.source == "earlier runs"
    effect = compare_pairs([1] * 40, [0] * 10 + [1] * 30).effect
    # The interval is 1.96 standard errors to each side, and 80 % power needs 2.8.
    assert plan.paired == pytest.approx(
        (effect.high - effect.low) / 2 / 1.96 * 2.8, rel=0.15
    )
    assert plan.needed > estimates.samples[0].questions
    with pytest.raises(InputError, match="like=none: the suite has no run with scores"):
        read_spreads(suite.parent / "none")


def test_the_command(suite: Path, tmp_path: Path) -> None:
    """`estimate` prints the detected differences and the wanted sample with its price, and writes both."""
    options = [
        "--model",
        "longctx/lexical",
        "--price-input",
        "2",
        "--price-output",
        "8",
        "--detect",
        "5",
    ]
    entries = [
        f"helmet_recall:task={task},length=8k,num_samples=40"
        for task in ("json_kv", "ruler_niah_mk_2")
    ]
    path = tmp_path / "estimate.json"
    arguments = [
        "estimate",
        *entries,
        *options,
        "--like",
        suite.name,
        "-o",
        str(suite.parents[1]),
        "--json",
        str(path),
    ]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    first, second = (load["plans"][0] for load in json.loads(path.read_bytes()))
    assert (first["source"], second["source"]) == ("earlier runs", "published scores")
    (line,) = [
        line for line in done.stdout.splitlines() if "helmet_recall:json_kv:8k" in line
    ]
    assert f"{100 * first['paired']:.1f} " in line
    assert f"{first['needed']:,}" in line
    assert f"${first['dollars']:,.2f}" in line
    assert "mean of all tasks" in done.stdout
    assert "80 % power at 5 %" in done.stdout


def test_a_smaller_run_of_a_task_does_not_count(suite: Path) -> None:
    """Of several earlier runs of a task and model only the one with the most instances counts."""
    before = read_spreads(suite)
    making.make_run(
        suite.parents[2],
        ENTRY.replace("num_samples=40", "num_samples=5") + "test/plain",
    )
    assert read_spreads(suite) == before
