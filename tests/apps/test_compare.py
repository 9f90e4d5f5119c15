"""Tests of `helm-longctx compare` on a suite."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.commands import Command
from tests.support.fabricate_runs import long_prompts, write_run

MODELS = ("a/copy", "longctx/null", "longctx/lexical")


@pytest.fixture
def suite() -> Path:
    """Write a suite with three models, of which the second one fails every other instance."""
    folder = Path("benchmark_output/runs/s")
    for model in MODELS[1:]:
        run = write_run(
            folder,
            f"helmet_recall:task=json_kv,length=8k,model={model}",
            long_prompts(40, 600),
        )
        if model == "longctx/null":
            path = run / "per_instance_stats.json"
            rows = json.loads(path.read_text())
            for row in rows[::2]:
                row["stats"][0]["mean"] = 0.0
            path.write_text(json.dumps(rows))
    copy = folder / "helmet_recall:task=json_kv,length=8k,model=a_copy"
    shutil.copytree(run, copy)
    spec = (copy / "run_spec.json").read_text()
    (copy / "run_spec.json").write_text(spec.replace(MODELS[2], MODELS[0]))
    return folder


def test_models_are_needed(command: Command) -> None:
    """`compare` without models or with one model ends in one line."""
    for models in ((), ("longctx/null",)):
        assert command("compare", *models, "--suite", "s") == 2
        assert command.err.startswith(
            f"helm-longctx: error: compare: models={' '.join(models)!r} is invalid"
        )
        assert command.err.count("\n") == 1


def test_two_models(command: Command, suite: Path) -> None:
    """`compare` with two models prints tables and links, and writes JSON."""
    assert (
        command(
            "compare",
            *MODELS[:2],
            "--suite",
            "s",
            "--json",
            "out.json",
            "--instances",
            "2",
        )
        == 0
    ), command.err
    assert "40 instances that both models answered" in command.out
    assert "json_kv at 8k, json_kv-0: 100.0 and 0.0" in command.out
    assert "http://127.0.0.1:8000/#/runs/helmet_recall%3Atask%3Djson_kv" in command.out
    content = json.loads(Path("out.json").read_text())
    everything = content["pairings"][0]
    assert (everything["by"], everything["better"]) == ("all", MODELS[0])
    assert everything["comparison"]["effect"]["mean"] == 0.5
    assert [standing["model"] for standing in content["standings"]] == list(MODELS[:2])
    assert len(content["differences"]) == 2


def test_methods(command: Command, suite: Path) -> None:
    """`compare --methods` pairs each method with the plain prompts of its model, also where no costs are known."""
    null, right = (
        suite / f"helmet_recall:task=json_kv,length=8k,model=longctx_{name}"
        for name in ("null", "lexical")
    )
    for run, method in (
        (right, {"method": "retrieve", "chunks": "4"}),
        (null, {"method": "closed_book"}),
    ):
        copy = (
            suite
            / f"helmet_recall:task=json_kv,length=8k,method={method['method']},model=longctx_null"
        )
        shutil.copytree(run, copy)
        spec = json.loads((copy / "run_spec.json").read_text())
        spec["scenario_spec"]["args"] |= method
        spec["adapter_spec"] |= {"model": MODELS[1], "model_deployment": MODELS[1]}
        (copy / "run_spec.json").write_text(json.dumps(spec))
    assert command("compare", "--methods", "--suite", "s", "--json", "out.json") == 0, (
        command.err
    )
    assert "longctx/null: methods" in command.out
    assert MODELS[0] not in command.out
    gains = {
        gain["method"]: gain
        for gain in json.loads(Path("out.json").read_text())["gains"]
    }
    retrieve = gains["method=retrieve chunks=4"]
    closed = gains["method=closed_book"]
    assert retrieve["comparison"]["effect"]["mean"] == 0.5
    assert (retrieve["costs"]["score"], retrieve["plain"]["score"]) == (1.0, 0.5)
    assert closed["comparison"]["effect"]["mean"] == 0.0
    # Of two methods, the smaller p-value counts twice.
    assert retrieve["adjusted"] == min(1.0, 2 * retrieve["comparison"]["p_value"])
    assert {
        retrieve[part][name]
        for part in ("costs", "plain")
        for name in ("tokens", "dollars_per_point")
    } == {None}
    assert command("compare", MODELS[2], "--methods", "--suite", "s") == 2
    assert (
        f"model='{MODELS[2]}' has no runs with and without a method; give {MODELS[1]}"
        in command.err
    )


def test_a_suite_without_methods(command: Command, suite: Path) -> None:
    """`compare --methods` says what to run if no model has runs with and without a method."""
    assert command("compare", "--methods", "--suite", "s") == 2
    assert (
        "no model of the suite has runs with and without a method; run the same entries with method="
        in command.err
    )


def test_a_matrix(command: Command, suite: Path) -> None:
    """A matrix of three models marks ties as ties."""
    assert command("compare", *MODELS, "--suite", "s", "--benchmark", "helmet") == 0, (
        command.err
    )
    assert "= (+0.0)" in command.out
    assert "-50.0" in command.out


def test_bad_arguments(command: Command, suite: Path) -> None:
    """Each mistake in the arguments of `compare` ends in one line that says what to give."""
    assert command("compare", MODELS[0], "--suite", "s") == 2
    assert "give two or more different models" in command.err
    assert command("compare", *MODELS[:2], "--suite", "s", "--length", "16k") == 2
    assert "no scored instance in common" in command.err
    assert command("compare", *MODELS[:2], "--suite", "s", "--benchmark", "helmt") == 2
    assert "did you mean helmet" in command.err
