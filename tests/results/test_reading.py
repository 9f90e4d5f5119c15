"""Tests of what is read from the files of a run, and what is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.results.reading import Result, read_results, task_statistics
from helm_longctx.results.statistics.intervals import Interval, mean_interval
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_run
from tests.support.scores import make_score

ENTRY = "helmet_recall:task=json_kv,length=8k,model=acme/one"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run of one model."""
    return write_run(tmp_path / "s", ENTRY, "acme/one", 0.6, instances=12)


def change(path: Path, edit: Callable[[Any], Any]) -> None:
    """Rewrite a JSON file with an edited value."""
    path.write_text(json.dumps(edit(json.loads(path.read_text())), indent=2))


def read(run: Path) -> Result:
    (result,) = read_results(run.parent, BENCHMARKS)
    return result


def test_perturbed_and_empty_statistics_are_no_scores(run: Path) -> None:
    """Neither a statistic of perturbed instances nor one without a mean takes the place of the score."""
    before = read(run)
    name = {"name": "longctx_score", "split": "test", "sub_split": "json_kv"}
    perturbed = {
        "name": {**name, "perturbation": {"name": "typos"}},
        "count": 1,
        "mean": 0.999,
    }
    empty = {"name": {**name, "name": "empty"}, "count": 0}
    change(run / "stats.json", lambda stats: [*stats, perturbed, empty])
    after = read(run)
    assert after.interval == before.interval
    assert after.statistics.keys() == before.statistics.keys()


def test_a_task_that_the_package_no_longer_has(run: Path) -> None:
    """The scores of a task that the package no longer has are read, without reasons why they are incomparable."""
    score = read(run).interval
    for name in ("stats", "per_instance_stats", "scenario_state"):
        path = run / f"{name}.json"
        path.write_text(path.read_text().replace('"json_kv', '"gone'))
    result = read(run)
    assert (result.task, result.caveats) == ("gone", ())
    assert result.interval == score


def test_a_run_without_the_task_s_own_statistic(run: Path) -> None:
    """A task's own statistic that a run lacks is not made up."""
    assert "json_kv_score" in read(run).statistics

    def keep(stats: list[Any]) -> list[Any]:
        return [stat for stat in stats if stat["name"]["name"] != "json_kv_score"]

    change(run / "stats.json", keep)
    change(
        run / "per_instance_stats.json",
        lambda rows: [{**row, "stats": keep(row["stats"])} for row in rows],
    )
    result = read(run)
    assert "json_kv_score" not in result.statistics
    assert result.has_score


def test_only_shares_end_at_one() -> None:
    """An interval that moves to the mean of the files keeps its width, unless its values are shares."""
    for values, mean, is_share in (
        ([1.0, 3.0, 2.0, 2.0], 2.5, False),
        ([0.5, 1.0, 0.5, 1.0], 0.875, True),
    ):
        own = mean_interval(values, list("abcd"))
        rows = [
            make_score(None, name, values={"m": value})
            for name, value in zip("abcd", values, strict=True)
        ]
        moved = task_statistics(None, rows, {"m": mean}, {})["m"].interval
        by = mean - own.mean
        high = min(1.0, own.high + by) if is_share else own.high + by
        assert moved == Interval(mean, own.low + by, high, 4)
        assert (moved.high == 1) == is_share


def test_models_are_named_by_deployments_only_if_there_are_several(run: Path) -> None:
    """Models are named by their deployments only if there are several, and a run that names none has the model's name."""

    def deploy(run: Path, deployment: str) -> None:
        def edit(spec: Any) -> Any:
            return {
                **spec,
                "adapter_spec": {
                    **spec["adapter_spec"],
                    "model_deployment": deployment,
                },
            }

        change(run / "run_spec.json", edit)

    deploy(run, "host/one")
    assert read(run).model == "acme/one"
    others = [
        write_run(run.parent, f"{ENTRY.replace('8k', length)}", "acme/one", 0.6, 12)
        for length in ("16k", "32k")
    ]
    for other, deployment in zip(others, ("other/one", ""), strict=True):
        deploy(other, deployment)
    names = {
        result.length: result.model for result in read_results(run.parent, BENCHMARKS)
    }
    assert names == {8192: "host/one", 16384: "other/one", 32768: "acme/one"}


def test_a_metric_that_had_another_name(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with a metric's earlier name has the same statistics as one with today's, with their intervals."""
    values = [index % 2 for index in range(12)]

    def add_to_rows(rows: Any) -> Any:
        for row, value in zip(rows, values, strict=True):
            name = {**row["stats"][0]["name"], "name": "old_match"}
            row["stats"].append({"name": name, "count": 1, "mean": value})
        return rows

    def add_mean(stats: Any) -> Any:
        name = {"name": "old_match", "split": "test", "sub_split": "json_kv"}
        return [*stats, {"name": name, "count": 12, "mean": 0.5}]

    change(run / "per_instance_stats.json", add_to_rows)
    change(run / "stats.json", add_mean)
    benchmark = next(one for one in BENCHMARKS if one.name == "helmet")
    monkeypatch.setitem(vars(benchmark), "former_metrics", {"old_match": "match"})
    result = read(run)
    assert "old_match" not in result.statistics
    interval = result.statistics["match"].interval
    assert (interval.mean, interval.n) == (0.5, 12)
    assert 0 < interval.low < 0.5 < interval.high < 1
    assert benchmark.current_name("old_match:gpt-4") == "match:gpt-4"
    assert benchmark.current_name("old_match_at_depth_50") == "match_at_depth_50"
