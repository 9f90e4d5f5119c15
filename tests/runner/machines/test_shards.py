"""Tests of runs that several processes make together."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from typer.testing import CliRunner

from helm_longctx.cli.main import app
from helm_longctx.models.apis import rates
from helm_longctx.models.baselines import lexical
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.machines.shards import OneShard, divide_paces
from helm_longctx.runner.runner import runner_arguments
from helm_longctx.runs.journal import Shard, answer_files
from tests.e2e.commands import write_ready
from tests.runner.making import ENTRY, PlainClient, spec_of
from tests.support.programs import run, start
from tests.support.servers.llm import asked_again, serve
from tests.support.shards import read_all, run_path


def arguments(folder: Path, **flags: bool) -> dict[str, object]:
    return runner_arguments(folder / "out", "s", folder, 2, has_cache=False, **flags)


def test_merged_results_are_those_of_one_machine(tmp_path: Path) -> None:
    """The merged results of shards equal the results of one machine byte by byte, and no request is sent twice."""
    spec = spec_of(f"{ENTRY}test/plain")
    LongContextRunner(**arguments(tmp_path / "one")).run_all([spec])
    expected = PlainClient.asked.copy()
    PlainClient.asked.clear()
    for number in (3, 1, 2):
        LongContextRunner(
            **arguments(tmp_path / "three"), strategy=OneShard(Shard(number, 3))
        ).run_all([spec])
    assert sorted(PlainClient.asked) == sorted(expected)
    LongContextRunner(**arguments(tmp_path / "three")).run_all([spec])
    assert len(PlainClient.asked) == len(expected)
    assert read_all(run_path(tmp_path / "three", spec)) == read_all(
        run_path(tmp_path / "one", spec)
    )
    assert answer_files(run_path(tmp_path / "three", spec)) == []


def test_shards_that_no_process_makes(tmp_path: Path) -> None:
    """The run sends their requests itself, and a shard of a complete run sends nothing."""
    spec = spec_of(f"{ENTRY}test/plain")
    LongContextRunner(**arguments(tmp_path), strategy=OneShard(Shard(1, 3))).run_all(
        [spec]
    )
    assert 0 < len(PlainClient.asked) < 12
    LongContextRunner(**arguments(tmp_path)).run_all([spec])
    assert len(PlainClient.asked) == len(set(PlainClient.asked)) == 12
    LongContextRunner(
        **arguments(tmp_path, skip_completed_runs=True), strategy=OneShard(Shard(3, 3))
    ).run_all([spec])
    assert len(PlainClient.asked) == 12
    assert not (run_path(tmp_path, spec) / "shards").exists()


def test_another_division(tmp_path: Path) -> None:
    """Answers are found whatever the number of shards was."""
    spec = spec_of(f"{ENTRY}test/plain")
    LongContextRunner(**arguments(tmp_path), strategy=OneShard(Shard(1, 2))).run_all(
        [spec]
    )
    for number in range(1, 6):
        LongContextRunner(
            **arguments(tmp_path), strategy=OneShard(Shard(number, 5))
        ).run_all([spec])
    assert len(PlainClient.asked) == len(set(PlainClient.asked)) == 12


def test_a_limit_is_divided() -> None:
    """Four processes send together as much as one may. Afterwards this process has the whole limit again."""
    with divide_paces(4):
        pace = rates.pace("address", "model", 240, None)
        pace.reserve(1)
        assert 0.9 < pace.reserve(1) <= 1.0
    pace = rates.pace("address", "model", 240, None)
    pace.reserve(1)
    assert 0.2 < pace.reserve(1) <= 0.25


class Model:
    """Answers as the lexical baseline does, and answers the sixth question only when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.reached = threading.Event()
        self.resume = threading.Event()

    def __call__(self, prompt: str) -> str:
        """Return the answer to a prompt."""
        self.asked += 1
        if self.asked == 6:
            self.reached.set()
            self.resume.wait(120)
        return lexical.answer(prompt)


def test_a_killed_shard(tmp_path: Path) -> None:
    """`kill -9`, the same command again and the merge: nothing is lost and no answered request is asked again."""
    entry = "helmet_recall:task=json_kv,length=4k,num_samples=24,style=chat,model=vllm/llama-3.1-8b-instruct"
    model = Model()
    with serve(model) as server:
        write_ready(tmp_path, server.openai)
        options = [
            entry,
            "--suite",
            "s",
            "-m",
            "99",
            "-n",
            "1",
            "--disable-cache",
            "--local-path",
            tmp_path,
        ]
        options += ["-o", tmp_path / "out"]
        process = start(
            "helm-longctx",
            "shard",
            "2/2",
            *options,
            folder=tmp_path,
            output=tmp_path / "log",
        )
        assert model.reached.wait(120), (tmp_path / "log").read_text()
        process.kill()
        assert process.wait() == -signal.SIGKILL
        model.resume.set()
        # What the killed process had asked last was answered by the server, but nobody has that answer.
        lost = server.calls[-1].question
        for part in ("2/2", "1/2"):
            result = CliRunner().invoke(app, ["shard", part, *map(str, options)])
            assert result.exit_code == 0, result.output
        assert {call.question for call in asked_again(server.calls)} <= {lost}
        assert len({call.question for call in server.calls}) == 24


def test_one_command_runs_all_shards(tmp_path: Path) -> None:
    """`shard all/2` starts two processes without a GPU, and completes the run from their answers."""
    entry = "helmet_recall:task=json_kv,length=4k,num_samples=4,model=longctx/lexical"
    options = ("--suite", "s", "-m", "8", "--disable-cache")
    done = run("helm-longctx", "shard", "all/2", entry, *options, folder=tmp_path)
    log = done.stdout + done.stderr
    assert done.returncode == 0, log
    assert "shard 1/2: 2 requests" in log
    assert "shard 2/2: 2 requests" in log
    assert "4 answered before" in log
    assert len(list(tmp_path.glob("benchmark_output/runs/s/*/stats.json"))) == 1


def test_more_shards_than_gpus(tmp_path: Path) -> None:
    """More processes than GPUs end in one line before any process starts."""
    options = ("--suite", "s", "-m", "8", f"{ENTRY}test/plain")
    done = run(
        "helm-longctx",
        "shard",
        "all/3",
        *options,
        folder=tmp_path,
        CUDA_VISIBLE_DEVICES="0, 1",
    )
    assert done.returncode == 2
    assert "part='all/3' is invalid; give at most all/2" in done.stderr
