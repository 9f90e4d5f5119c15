"""Tests of the scores that NeMo Evaluator gets, and of the files in the output folder."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment

from core_evals.helm_longctx.results import read_results, write_files
from helm_longctx.errors import InputError
from helm_longctx.runner import LongContextRunner
from tests.runner.making import deployed, make_run
from tests.support.leaderboards import summarize_suite

ENTRY = "helmet_recall:length=8k,num_samples=4,model=longctx/lexical"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("results"), ENTRY, LongContextRunner)
    return run.parent


def scores(results: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    return results[kind][name]["metrics"]["score"]["scores"]


def test_scores(suite: Path) -> None:
    """Values are HELM's means, standard errors come from the answers, and a category is the mean of its tasks."""
    results = read_results(suite)
    names = [
        f"helmet_{name}_8k"
        for name in ("json_kv", "ruler_niah_mk_2", "ruler_niah_mk_3", "ruler_niah_mv")
    ]
    assert list(results["tasks"]) == names
    assert list(results["groups"]) == ["helmet_recall_8k"]
    (run,) = suite.glob("helmet_recall*")
    rows = json.loads((run / "per_instance_stats.json").read_text(encoding="utf-8"))
    stats = json.loads((run / "stats.json").read_text(encoding="utf-8"))
    for task, name in zip(
        ("json_kv", "ruler_niah_mk_2", "ruler_niah_mk_3", "ruler_niah_mv"),
        names,
        strict=True,
    ):
        score = scores(results, "tasks", name)["longctx_score"]
        key = {"name": "longctx_score", "split": "test", "sub_split": task}
        (mean,) = (stat["mean"] for stat in stats if stat["name"] == key)
        values = [
            stat["mean"] for row in rows for stat in row["stats"] if stat["name"] == key
        ]
        assert score["value"] == mean
        assert score["stats"]["count"] == len(values) == 4
        assert score["stats"]["stderr"] == pytest.approx(stdev(values) / 2)
        assert scores(results, "tasks", name)["request_failed"]["value"] == 0
    whole = scores(results, "groups", "helmet_recall_8k")["longctx_score"]
    parts = [scores(results, "tasks", name)["longctx_score"] for name in names]
    assert whole["value"] == pytest.approx(fmean(part["value"] for part in parts))
    assert whole["stats"]["stderr"] == pytest.approx(
        math.hypot(*(part["stats"]["stderr"] for part in parts)) / 4
    )
    assert whole["stats"]["count"] == 16


def test_nemo_evaluator_takes_them(suite: Path) -> None:
    """NeMo Evaluator's own classes accept the results without changing a score."""
    dataclasses = pytest.importorskip("nemo_evaluator.api.api_dataclasses")
    results = read_results(suite)
    taken = dataclasses.EvaluationResult.model_validate(results).model_dump(
        exclude_none=True
    )
    for name in results["tasks"]:
        assert scores(taken, "tasks", name) == scores(results, "tasks", name)


def test_files(suite: Path, tmp_path: Path) -> None:
    """The files have a line for each instance, each answer and each answer's statistics."""
    write_files(suite, tmp_path)
    (run,) = (path.name for path in suite.glob("helmet_recall*"))
    files = ("instances.jsonl", "results.jsonl", f"responses/{run}.jsonl")
    instances, results, responses = (
        [
            json.loads(line)
            for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()
        ]
        for name in files
    )
    assert len(instances) == len(results) == len(responses) == 16
    assert {row["run"] for row in (*instances, *results)} == {run}
    assert [row["id"] for row in instances] == [row["id"] for row in responses]
    assert all(row["success"] and row["completions"][0]["text"] for row in responses)
    assert all(
        row["references"] and len(row["input"]["text"]) < 10_000 for row in instances
    )


@pytest.mark.parametrize(
    "name",
    ["run_spec.json", "stats.json", "per_instance_stats.json", "scenario_state.json"],
)
def test_a_damaged_run(
    name: str, suite: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged run is left out of the scores and files with a warning, and the others are as without it."""
    copy = tmp_path / "suite"
    (run,) = suite.glob("helmet_recall*")
    shutil.copytree(run, copy / run.name)
    shutil.copytree(run, copy / "damaged")
    file = copy / "damaged" / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert read_results(copy) == read_results(suite)
    write_files(copy, tmp_path)
    lines = {line for line in caplog.text.splitlines() if "left out" in line}
    assert lines
    assert all(f"{file} cannot be read" in line for line in lines)
    for path in (tmp_path / "instances.jsonl", tmp_path / "results.jsonl"):
        rows = [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]
        assert [row["run"] for row in rows] == [run.name] * 16
    file.unlink()
    shutil.rmtree(copy / run.name)
    file.write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        read_results(copy)


def test_generated_questions(suite: Path, tmp_path: Path) -> None:
    """Tasks, groups and answers say that the questions are not the benchmark's own."""
    results = read_results(suite)
    for kind in ("tasks", "groups"):
        for name in results[kind]:
            assert scores(results, kind, name)["generated_data"]["value"] == 1
    write_files(suite, tmp_path)
    (path,) = (tmp_path / "responses").iterdir()
    answers = [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert all(answer["generated_data"] is True for answer in answers)


def test_a_suite_without_runs(tmp_path: Path) -> None:
    """A suite without runs gives results without tasks and groups."""
    assert read_results(tmp_path) == {"tasks": {}, "groups": {}}


def test_a_medical_run(tmp_path: Path) -> None:
    """HELM's own run has its name and its statistics, and its pages show its main metric."""
    path = tmp_path / "benchmark_output/scenarios/medec/medec_test.csv"
    path.parent.mkdir(parents=True)
    rows = [
        f"0 The patient has a fever of {number}.,0,NA,-1" for number in range(38, 42)
    ]
    path.write_text(
        "\n".join(["Sentences,Error Flag,Corrected Sentence,Error Sentence ID", *rows]),
        encoding="utf-8",
    )
    client = ClientSpec("tests.runner.making.PlainClient")
    with deployed(ModelDeployment("tests/plain", client, "longctx/null")) as name:
        run = make_run(
            tmp_path,
            f"medec:model=longctx/null,model_deployment={name}",
            LongContextRunner,
        )
    results = read_results(run.parent)
    assert list(results["tasks"]) == list(results["groups"]) == ["medec"]
    scored = scores(results, "tasks", "medec")["medec_error_flag_accuracy"]
    assert scored["stats"]["count"] == 4
    assert "stderr" in scored["stats"]
    summarize_suite("s", tmp_path / "benchmark_output")
    (table, *_) = json.loads(
        (run.parent / "groups/medec.json").read_text(encoding="utf-8")
    )
    titles = [header["value"] for header in table["header"]]
    assert titles[:2] == ["Model", "MedecFlagAcc"]
    assert table["rows"][0][1]["value"].startswith(f"{scored['value']:.4f}")
