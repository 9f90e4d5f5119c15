"""`kill -9` in the middle of a run, and the same command again."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from helm_longctx.models import lexical
from helm_longctx.runs.journal import NAME
from tests.e2e.commands import BIN, write_ready
from tests.e2e.test_runs import RUNNER
from tests.running.making import make_run, means
from tests.servers.llm import serve

ROOT = Path(__file__).parents[2]
ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=40,"
THREADS = 3


class Model:
    """Answers as the lexical baseline does, slowly, and says when it was asked often enough."""

    def __init__(self) -> None:
        self.asked, self.due = 0, 1000
        self.enough = threading.Event()

    def __call__(self, prompt: str) -> str:
        """The answer."""
        self.asked += 1
        if self.asked >= self.due:
            self.enough.set()
        time.sleep(0.02)
        return lexical.answer(prompt)


def start(folder: Path, options: list[str], log: str = "log") -> subprocess.Popen[bytes]:
    """`helm-run` on forty requests to the server."""
    command = [
        str(BIN / "helm-run"),
        "--run-entries",
        f"{ENTRY}style=chat,model=vllm/llama-3.1-8b-instruct",
        "-m",
        "99",
    ]
    command += ["--suite", "s", "-n", str(THREADS), "--local-path", str(folder), *RUNNER, *options]
    with (folder / log).open("ab") as file:
        return subprocess.Popen(command, cwd=folder, stdout=file, stderr=file)


@pytest.mark.parametrize(("options", "kills"), [(["--disable-cache"], 1)])
def test_killed(options: list[str], kills: int, tmp_path: Path) -> None:
    """No request is asked again but those in flight, and the results are those of an undisturbed run."""
    rng, model, asked_at_kill = random.Random(kills), Model(), []
    with serve(model) as server:
        write_ready(tmp_path, server.openai)
        for kill in range(1, kills + 1):
            model.due = kill * 40 // (kills + 1) + rng.randint(-2, 2)
            model.enough.clear()
            process = start(tmp_path, options)
            assert model.enough.wait(60)
            time.sleep(rng.random() / 20)
            process.kill()
            process.wait()
            asked_at_kill.append(len(server.calls))
        model.due = 1000
        assert start(tmp_path, options).wait(120) == 0, (tmp_path / "log").read_text()
    prompts = [call.prompt for call in server.calls]
    assert len(set(prompts)) == 40
    for number in asked_at_kill:
        again = set(prompts[:number]) & set(prompts[number:])
        assert len(again) <= THREADS
        assert again <= set(prompts[number - 2 * THREADS : number])
    (run,) = tmp_path.glob("benchmark_output/runs/s/helmet*")
    assert not (run / NAME).exists()
    # Other tests register deployments of this model, the last of which would be its default.
    undisturbed = f"{ENTRY}style=chat,model=longctx/lexical,model_deployment=longctx/lexical"
    expected, found = means(make_run(tmp_path / "undisturbed", undisturbed)), means(run)
    assert {name: found.get(name) for name in expected} == expected  # a server also counts tokens
