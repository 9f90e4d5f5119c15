"""Tests of checkpoints: their scores over steps, where these are logged, and folders that are watched."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import helm_longctx as lc
from helm_longctx.apps.checkpoints.sections import (
    SampledChange,
    find_trend,
    level_of_step,
)
from helm_longctx.apps.exchange import loggers
from helm_longctx.cli import run as run_command
from helm_longctx.results.boards import read_suite
from helm_longctx.tasks.registry import BENCHMARKS
from tests.evaluation.calls import call, look_up
from tests.support.commands import Command
from tests.support.programs import start

STEPS = (1000, 200, 3000, 40, 5000)
BOARDS = Path("benchmark_output/runs/evaluate")


def learner(step: int) -> Any:
    """Return a function that finds the more values, the later the step is; those of earlier steps are among them."""

    def answer(prompt: lc.Prompt) -> str:
        number = int(prompt.id.rpartition("-")[2])
        return (
            look_up(prompt)
            if number % 10 < {40: 0, 200: 0, 1000: 3, 3000: 6, 5000: 10}[step]
            else "unknown"
        )

    return answer


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the runs of five checkpoints, in no order, and return their output folder."""
    folder = tmp_path_factory.mktemp("training") / "benchmark_output"
    functions = [learner(step) for step in STEPS]
    call(
        functions,
        lengths="4k",
        num_samples=20,
        name=[f"mine/step-{step}" for step in STEPS],
        output_path=folder,
    )
    call("longctx/null", lengths="4k", num_samples=20, output_path=folder)
    return folder


@pytest.fixture
def training(output: Path) -> None:
    """Copy the runs of the checkpoints into the folder of a test."""
    shutil.copytree(output, "benchmark_output")


@pytest.mark.usefixtures("training")
def test_scores_over_steps(command: Command, tmp_path: Path) -> None:
    """The command says from which step on a task is above its floor, and whether the last steps rise."""
    file = tmp_path / "curves.json"
    assert command("checkpoints", "--suite", "evaluate", "--json", file) == 0, (
        command.err
    )
    assert "HELMET: steps of mine/step-*" in command.out
    (curve,) = [
        load
        for load in json.loads(file.read_text())["curves"]
        if load["part"] == "json_kv"
    ]
    assert list(map(int, curve["scores"])) == sorted(STEPS)
    assert [round(score["mean"], 2) for score in curve["scores"].values()] == [
        0,
        0,
        0.3,
        0.6,
        1,
    ]
    # 30 % of 20 questions are not surely above the floor at the third look.
    assert curve["above_floor_from"] == 3000
    assert curve["direction"] == "rises"


def test_last_steps_that_do_not_rise(command: Command, tmp_path: Path) -> None:
    """Equal last steps are no rise, and a floor above the scores is never left."""
    call(
        [learner(3000)] * 3,
        lengths="4k",
        name=[f"mine/checkpoint-{step}" for step in (1, 2, 3)],
    )
    call(learner(5000), lengths="4k", name="longctx/other")
    file = tmp_path / "curves.json"
    assert command("checkpoints", "--suite", "evaluate", "--json", file) == 0, (
        command.err
    )
    rows = json.loads(file.read_text())["curves"]
    assert {row["direction"] for row in rows} == {"cannot tell"}


def test_a_trend_holds_over_looks_and_noise() -> None:
    """Noise of 2 points is seldom a rise over 18 looks, a rise of 2 points a step is found, and few steps need more."""
    random = np.random.default_rng(7)
    still = SampledChange(0.0, 0.01)

    def is_found(means: Sequence[float]) -> bool:
        return find_trend(means, still)[1] < level_of_step(len(means))

    false_alarms = 0
    for _ in range(100):
        means = random.normal(0.5, 0.02, 18)
        false_alarms += any(is_found(means[:count]) for count in range(6, 19))
    assert false_alarms <= 10
    assert is_found(0.3 + 0.02 * np.arange(18) + random.normal(0, 0.02, 18))
    assert find_trend([0.5, 0.54, 0.54], SampledChange(0.04, 0.005))[1] > level_of_step(
        3
    )
    assert find_trend([0.5, 0.6, 0.8], SampledChange(0.3, 0.03))[1] < level_of_step(3)


def test_a_suite_without_steps(command: Command) -> None:
    """Models without steps have no curves."""
    call(look_up, lengths="4k", name="one")
    assert command("checkpoints", "--suite", "evaluate") == 2
    assert (
        "has no two steps of a training; name models as checkpoints/step-1000"
        in command.err
    )


@pytest.mark.usefixtures("training")
def test_entries_for_the_hub(command: Command) -> None:
    """Each model has the file of its repository, which huggingface_hub reads."""
    hub = pytest.importorskip("huggingface_hub")
    assert (
        command(
            "export", "--suite", "evaluate", "--format", "eval-results", "--to", "hub"
        )
        == 0
    ), command.err
    path = Path("hub/mine_step-3000/.eval_results/helmet.yaml")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(path.read_text()))
    assert (entry.dataset_id, entry.task_id, entry.value) == (
        "helm-longctx/generated",
        "json_kv_4k",
        60,
    )
    assert "95 % interval" in entry.notes
    assert "20 of the benchmark's 100 examples" in entry.notes


@pytest.mark.usefixtures("training")
def test_points_of_a_training() -> None:
    """The checkpoints of a training are one run, whose values have intervals and steps; a floor has a run of its own."""
    trainings = loggers.find_series(read_suite(BOARDS, BENCHMARKS).boards)
    assert list(trainings) == ["longctx/null", "mine/step-*"]
    points = trainings["mine/step-*"].points
    assert list(points) == sorted(STEPS)
    values = points[3000]
    start = "helmet/json_kv/4k"
    assert (
        values[f"{start}/low"]
        < values[f"{start}/score"]
        == 0.6
        < values[f"{start}/high"]
    )
    # The questions of this suite were generated, because HELMET's archive is missing.
    assert values[f"{start}/generated"] == 1


@pytest.mark.usefixtures("training")
def test_tensorboard(tmp_path: Path) -> None:
    """An event file has the scores and the ends of their intervals at their steps."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    lines = loggers.log_scores(
        read_suite(BOARDS, BENCHMARKS).boards,
        [loggers.parse_target(f"tensorboard:{tmp_path}")],
        "a",
    )
    assert all("generated questions, not the benchmark's own" in line for line in lines)
    events = EventAccumulator(str(tmp_path / "a/mine/step-"))
    events.Reload()
    points = {
        Scalar.step: Scalar.value
        for Scalar in events.Scalars("helmet/json_kv/4k/score")
    }
    assert points == pytest.approx({40: 0, 200: 0, 1000: 0.3, 3000: 0.6, 5000: 1})


@pytest.mark.usefixtures("training")
def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of mlflow has the scores at their steps."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    loggers.log_scores(
        read_suite(BOARDS, BENCHMARKS).boards,
        [loggers.parse_target(f"mlflow:{tmp_path}")],
        "a",
    )
    logged = mlflow.search_runs(experiment_names=["helm-longctx"], output_format="list")
    (run,) = [point for point in logged if point.info.run_name == "a/mine/step-*"]
    history = mlflow.MlflowClient().get_metric_history(
        run.info.run_id, "helmet/json_kv/4k/score"
    )
    assert {point.step: point.value for point in history} == {
        40: 0,
        200: 0,
        1000: 0.3,
        3000: 0.6,
        5000: 1,
    }


@pytest.mark.usefixtures("training")
def test_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local project of trackio has the scores at their steps."""
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    pytest.importorskip("trackio")
    loggers.log_scores(
        read_suite(BOARDS, BENCHMARKS).boards,
        [loggers.parse_target("trackio:mine")],
        "a",
    )
    rows = (
        sqlite3.connect(tmp_path / "mine.db")
        .execute("select step, metrics from metrics")
        .fetchall()
    )
    assert {
        step: json.loads(values)["helmet/json_kv/4k/score"] for step, values in rows
    }[3000] == 0.6


@pytest.mark.usefixtures("training")
def test_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of wandb that are not online have files with the scores: one of the training, and one of the floor."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    loggers.log_scores(
        read_suite(BOARDS, BENCHMARKS).boards, [loggers.parse_target("wandb:mine")], "a"
    )
    files = [*tmp_path.glob("wandb/offline-run-*/*.wandb")]
    assert len(files) == 2
    most = max(file.read_bytes().count(b"helmet/json_kv/4k/") for file in files)
    assert most >= len(STEPS)


def test_targets(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    """A program that is unknown, or whose package is missing, is refused before anything is sent."""
    run = (
        "run",
        "--model",
        "longctx/null",
        "--tasks",
        "helmet_recall",
        "--length",
        "4k",
        "--log-to",
    )
    assert command(*run, "comet:x") == 2
    assert (
        "target='comet:x' is invalid; give wandb:PROJECT, mlflow:ADDRESS-OR-FOLDER"
        in command.err
    )
    monkeypatch.setattr("helm_longctx.environment.is_installed", lambda module: False)
    assert command(*run, "wandb:x") == 2
    assert (
        "--log-to wandb needs wandb; install with: pip install 'helm-longctx[wandb]'"
        in command.err
    )
    assert not Path("benchmark_output").exists()


def test_a_run_logs_its_scores(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """`run --log-to` logs the suite's scores at its end."""
    logged: list[Any] = []
    monkeypatch.setattr(loggers, "_log", lambda *arguments: logged.append(arguments))
    monkeypatch.setattr("helm_longctx.environment.is_installed", lambda module: True)
    options = (
        "--tasks",
        "helmet_recall:task=json_kv",
        "--length",
        "4k",
        "--argument",
        "num_samples=2",
    )
    assert (
        command("run", "--model", "longctx/lexical", *options, "--log-to", "wandb:mine")
        == 0
    ), command.err
    ((target, name, points),) = logged
    assert (target.program, target.address) == ("wandb", "mine")
    assert name == "default/longctx/lexical"
    assert points[0]["helmet/json_kv/4k/score"] == 1


def test_a_folder_that_is_watched(tmp_path: Path) -> None:
    """A checkpoint is run once it is complete, also one that appears later, and Ctrl-C ends the command."""
    pytest.importorskip("torch")
    from tests.models.small_models import save_model

    folder = tmp_path / "checkpoints"
    ready = save_model(folder / "step-1", positions=8192)
    half = save_model(folder / "step-2", seed=2, positions=8192)
    weights = (half / "model.safetensors").read_bytes()
    (half / "model.safetensors").unlink()
    options = [
        "run",
        "--watch",
        str(folder),
        "--tasks",
        "helmet_recall:task=json_kv",
        "--length",
        "4k",
    ]
    program = start(
        "helm-longctx",
        *options,
        "--argument",
        "num_samples=1",
        folder=tmp_path,
        output=tmp_path / "output.txt",
        errors=tmp_path / "errors.txt",
        prepare=_look_often,
    )
    try:
        _wait(tmp_path, "step-1", program)
        assert not list(tmp_path.glob("benchmark_output/runs/default/*step-2"))
        (half / "model.safetensors").write_bytes(weights)
        _wait(tmp_path, "step-2", program)
        time.sleep(2)  # until the tables after the runs are written
        program.send_signal(signal.SIGINT)
        program.wait(timeout=60)
    finally:
        program.kill()
    assert program.wait() == 130
    out = (tmp_path / "output.txt").read_text()
    assert out.index(f"{ready} is complete.") < out.index(f"{half} is complete.")
    errors = (tmp_path / "errors.txt").read_text()
    assert "stopped by SIGINT: no longer waiting for checkpoints" in errors


def _look_often() -> None:
    run_command._CHECKPOINT_SECONDS = 0.3


def _wait(folder: Path, step: str, process: Any) -> None:
    end = SimpleNamespace(time=time.monotonic() + 300)
    while not list(
        folder.glob(f"benchmark_output/runs/default/*{step}/per_instance_stats.json")
    ):
        assert process.poll() is None
        assert time.monotonic() < end.time
        time.sleep(0.05)
