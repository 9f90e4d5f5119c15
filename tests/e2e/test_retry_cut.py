"""Tests of `helm-longctx run --retry-cut` on a server that cuts answers at their limits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.models.baselines import lexical
from tests.support.programs import run
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import CHARACTERS, Model

BUDGET = 100
TIMES = 4
SAMPLES = 6
CONFIG = """\
suite: cut
tasks: [helmet_recall:task=json_kv]
lengths: [8k]
arguments: {{num_samples: 6}}
models:
  - {{name: my/tiny, url: {address}, model: tiny, type: chat, api_key_env: MY_KEY, context: 32k}}
limits: {{request_timeout: 600, max_retries: 0}}
parallelism: 2
retry_cut: {times}x
"""
BASE = "helmet_recall:task=json_kv,length=8k,num_samples=6,model=my_tiny"
AGAIN = "helmet_recall:task=json_kv,length=8k,num_samples=6,retry_cut=4x,model=my_tiny"


def talkative(prompt: str) -> str:
    """Return the right answer; for about half of the prompts after a text that needs more than the budget."""
    answer = lexical.answer(prompt)
    return (
        "Let me see. " * (BUDGET * CHARACTERS // 12) + answer
        if is_long(prompt)
        else answer
    )


def is_long(prompt: str) -> bool:
    return sum(lexical.answer(prompt).encode()) % 2 == 0


def states(folder: Path, name: str) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"benchmark_output/runs/cut/{name}/scenario_state.json")
    return json.loads(path.read_text())["request_states"]


def budgets(server: Server) -> list[int]:
    """Return the output budgets of the requests of runs, without the small requests that ask what the server offers."""
    asked = [
        body.get("max_completion_tokens") or body["max_tokens"]
        for body in server.bodies
    ]
    return [budget for budget in asked if budget >= BUDGET]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MY_KEY", "sk-mine-0123456789abcdef")
    return tmp_path


def command(folder: Path, server: Server, *options: str, times: int = TIMES) -> str:
    """Run the configuration, and return what it prints."""
    (folder / "run.yaml").write_text(CONFIG.format(address=server.address, times=times))
    done = run("helm-longctx", "run", "run.yaml", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_cut_answers_are_asked_for_again(folder: Path) -> None:
    """Only cut answers are asked for again; all others are those of the first run, and both scores are shown apart."""
    with serve(talkative, models={"tiny": Model()}) as server:
        planned = command(folder, server, "--dry-run")
        assert "1 run for cut answers" in planned
        assert not budgets(server)
        printed = command(folder, server)
        first = states(folder, BASE)
        long = [
            state["result"]["completions"][0]["finish_reason"]["reason"] == "length"
            for state in first
        ]
        assert 0 < sum(long) < SAMPLES
        assert sorted(budgets(server)) == [BUDGET] * SAMPLES + [TIMES * BUDGET] * sum(
            long
        )
        again = states(folder, AGAIN)
        for before, after, was_cut in zip(first, again, long, strict=True):
            if was_cut:
                assert after["request"] == {
                    **before["request"],
                    "max_tokens": TIMES * BUDGET,
                }
                assert after["result"]["completions"][0]["text"].startswith(
                    "Let me see."
                )
                assert (
                    after["result"]["completions"][0]["finish_reason"]["reason"]
                    == "stop"
                )
            else:
                assert json.dumps(after) == json.dumps(before)
        server.forget()
        assert command(folder, server) == printed
        assert not budgets(server)
    share = f"{100 * (SAMPLES - sum(long)) / SAMPLES:.1f}"
    assert all(
        re.search(rf"│ +{re.escape(text)}\W", printed) for text in (share, "100.0 †")
    )
    assert "cut answers asked for again with 4x the output budget" in printed


def test_reasoning_that_eats_the_budget(folder: Path) -> None:
    """Empty answers after reasoning that reached the limit are asked for again; after failures only those that failed."""
    model = Model(reasoning="Hmm. " * (BUDGET * CHARACTERS // 5), hides=True)
    with serve(lexical.answer, models={"tiny": model}) as server:
        # The second request with a prompt is the one with the larger budget.
        server.plan = lambda prompt, before: (
            Fault.SERVER_ERROR if before and is_long(prompt) else None
        )
        command(folder, server)
        assert {
            state["result"]["completions"][0]["text"] for state in states(folder, BASE)
        } == {""}
        failed = [state["result"]["success"] for state in states(folder, AGAIN)].count(
            False
        )
        assert 0 < failed < SAMPLES
        server.forget()
        server.plan = faults.none
        command(folder, server)
        assert budgets(server) == [TIMES * BUDGET] * failed
        assert all(
            state["result"]["completions"][0]["text"] for state in states(folder, AGAIN)
        )
