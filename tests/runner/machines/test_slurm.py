"""Tests of the job scripts of docs/scale.md, with a real Slurm if there is one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from helm.common.codec import to_json

from helm_longctx.models.baselines import lexical
from tests.e2e.commands import RUNNER, write_ready
from tests.runner.making import make_runner, spec_of
from tests.support.programs import BIN, run
from tests.support.servers.llm import asked_again, serve
from tests.support.shards import read_all

PAGE = Path(__file__).parents[3] / "docs/scale.md"
ENTRIES = "helmet_recall:task=json_kv,length=4k,num_samples=24,style=chat,model=vllm/llama-3.1-8b-instruct"


def blocks(language: str) -> list[str]:
    """Return the page's blocks in a language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )


def test_the_kubernetes_job_is_yaml() -> None:
    """The Kubernetes job is valid YAML, and its number of completions equals the number of shards."""
    (job,) = (
        content
        for block in blocks("yaml")
        if (content := yaml.safe_load(block)).get("kind") == "Job"
    )
    (argument,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f'"$((JOB_COMPLETION_INDEX + 1))/{job["spec"]["completions"]}" ' in argument


def write_jobs(folder: Path, address: str) -> str:
    """Write the page's scripts, and return the page's command that submits them."""
    shards, merge, submit = blocks("bash")
    for name, script in (("shards.sbatch", shards), ("merge.sbatch", merge)):
        small = (
            script.replace("--mem=4G", "--mem=500M")
            .replace(" -n 8", " -n 1")
            .replace("exec helm", f"exec {BIN}/helm")
        )
        (folder / name).write_text(small)
    (folder / "run_entries.conf").write_text(
        f'entries: [{{description: "{ENTRIES}", priority: 1}}]'
    )
    write_ready(folder / "prod_env", address)
    return submit


def is_slurm_here() -> bool:
    """Return whether jobs can be submitted on this machine."""
    return (
        bool(shutil.which("sbatch"))
        and subprocess.run(["scontrol", "ping"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not is_slurm_here(), reason="Slurm is not here")
def test_an_array(tmp_path: Path) -> None:
    """If a job of an array is killed, the merged results equal one machine's, and only lost requests are sent again."""
    started = threading.Event()
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 5:
            started.set()
        return lexical.answer(prompt)

    with serve(answer) as server:
        server.delay = 0.5
        server.cache.read = lambda prefixes: 0  # type: ignore[method-assign]  # of another run's prompts
        submit = write_jobs(tmp_path, server.openai).replace(
            "sbatch --dep", "sbatch --wait --dep"
        )
        with subprocess.Popen(
            ["bash", "-xc", submit], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as process:
            assert started.wait(120)
            jobs = subprocess.run(
                ["squeue", "--noheader", "--array", "-o", "%i"],
                capture_output=True,
                text=True,
            )
            (second,) = (job for job in jobs.stdout.split() if job.endswith("_2"))
            subprocess.run(["scancel", "--signal=KILL", "--full", second], check=True)
        assert process.returncode == 0, (tmp_path / "merge.log").read_text()
        assert len(asked_again(server.calls)) <= 1
        one = tmp_path / "one"
        one.mkdir()
        write_ready(one / "prod_env", server.openai)
        run(
            "helm-run",
            "--run-entries",
            ENTRIES,
            "--suite",
            "lc",
            "-m",
            10000,
            "--disable-cache",
            *RUNNER,
            folder=one,
        )
    merged, alone = (
        next(folder.glob("benchmark_output/runs/lc/helmet*"))
        for folder in (tmp_path, one)
    )
    assert read_all(merged) == read_all(alone)


def test_jobs_of_helms_runner_load_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that the Slurm runner submits makes a run of a model that only this package knows."""
    commands: list[str] = []

    class Slurm:
        def __init__(self, **options: str):
            assert options["job_name"].startswith("helmet_recall")

        def sbatch(self, command: str) -> int:
            commands.append(command)
            return 7

    monkeypatch.setitem(sys.modules, "simple_slurm", SimpleNamespace(Slurm=Slurm))
    from helm_longctx.runner.machines.slurm_runner import SlurmRunner, main

    spec = spec_of(
        "helmet_recall:task=json_kv,length=4k,num_samples=2,model=longctx/lexical"
    )
    runner = make_runner(Path(), SlurmRunner)
    assert isinstance(runner, SlurmRunner)
    for folder in (runner.run_specs_dir, runner.logs_dir):
        Path(folder).mkdir(parents=True)
    Path(runner.slurm_runner_spec_path).write_text(to_json(runner.slurm_runner_spec))
    assert runner._submit_slurm_job_for_run_spec(spec) == 7
    python, _, module, *options = shlex.split(commands[0])
    assert (python, module) == (
        sys.executable,
        "helm_longctx.runner.machines.slurm_runner",
    )
    monkeypatch.setattr(sys, "argv", [module, *options])
    main()
    assert (Path("benchmark_output/runs/s") / spec.name / "stats.json").exists()
