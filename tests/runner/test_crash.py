"""Tests that a run killed by `kill -9` is completed by the same command."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from helm_longctx.models.baselines import lexical
from helm_longctx.runs.journal import NAME
from tests.e2e.commands import write_ready
from tests.runner.making import make_run, means
from tests.support.processes import ENTRY, THREADS, start
from tests.support.servers.llm import serve

ROOT = Path(__file__).parents[2]


class Model:
    """Answers slowly as the lexical baseline does, and reports when it was asked often enough."""

    def __init__(self) -> None:
        self.asked = 0
        self.due = 1000
        self.enough = threading.Event()

    def __call__(self, prompt: str) -> str:
        """Return the answer to a prompt."""
        self.asked += 1
        if self.asked >= self.due:
            self.enough.set()
        time.sleep(0.02)
        return lexical.answer(prompt)


@pytest.mark.parametrize(("options", "kills"), [(["--disable-cache"], 1)])
def test_killed(options: list[str], kills: int, tmp_path: Path) -> None:
    """Only requests in flight are sent again, and the results equal an undisturbed run's."""
    rng = random.Random(kills)
    model = Model()
    asked_at_kill = []
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
    undisturbed = (
        f"{ENTRY}style=chat,model=longctx/lexical,model_deployment=longctx/lexical"
    )
    expected = means(make_run(tmp_path / "undisturbed", undisturbed))
    averages = means(run)
    assert {
        name: averages.get(name) for name in expected
    } == expected  # a server also counts tokens
