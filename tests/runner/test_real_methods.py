"""The methods `recursive` and `agent` end within their limits with a real language model, whatever it writes.

The tests are skipped if the model cannot be fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.runs.scores import read_steps
from tests.runner import making
from tests.runner.scripted_runs import MODEL
from tests.support.deployments import register_server
from tests.support.sandboxes import require_sandbox
from tests.support.servers.llm import serve
from tests.support.servers.tools import Turn, serve_tools

pytest.importorskip("torch")
pytest.importorskip("gguf")

from tests.support.servers.real_model import RealModel

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=1,style=chat,method="
TURNS = 2
CALLS = 2
MOST = 150
"""Characters at both ends of a prompt that the model reads, so that a long output of its code costs no minutes."""


@pytest.fixture(scope="module")
def model() -> RealModel:
    """Return a model whose answers are long enough for code."""
    try:
        return RealModel(tokens=24)
    except InputError as error:
        pytest.skip(f"the model cannot be fetched: {error}")


def shorten(prompt: str) -> str:
    return prompt if len(prompt) <= 2 * MOST else f"{prompt[:MOST]}\n{prompt[-MOST:]}"


def test_recursive_ends(
    model: RealModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's code is run, what it prints is shown to it, and it gives an answer at the latest after its turns."""
    require_sandbox(monkeypatch)

    def write(prompt: str) -> str:
        text = model.answer(shorten(prompt), None, 0.7)[0]
        # Blocks of the model are its own; text without one is run as code, so that something is run in each turn.
        return text if "```repl" in text else f"```repl\n{text}\n```"

    with serve(write) as server:
        register_server("corp/scripted", server.address)
        run = making.make_run(
            tmp_path,
            f"{ENTRY}recursive,turns={TURNS},calls={CALLS}{MODEL}",
            cache=False,
        )
    check(run, TURNS + 1 + CALLS)
    assert any("REPL output" in call.prompt for call in server.calls)


def test_agent_ends(model: RealModel, tmp_path: Path) -> None:
    """Whatever arguments the model writes, its tools say what is wrong with them, and it is asked to answer at the end."""

    def read(task: str, results: Sequence[str]) -> Turn:
        text = model.answer(shorten("\n\n".join([task, *results])), None, 0.7)[0]
        tool = ("search", "open", "find_next", text[:20] or "none")[len(results) % 4]
        return Turn(text, tool, {"query": text, "position": text, "text": text})

    with serve_tools(read) as (address, bodies):
        register_server("corp/scripted", address)
        run = making.make_run(
            tmp_path, f"{ENTRY}agent,turns={TURNS}{MODEL}", cache=False
        )
    check(run, TURNS + 1)
    assert any("The arguments are wrong" in str(body["messages"]) for body in bodies)


def check(run: Path, most: int) -> None:
    """Check that each question has an answer after at most so many requests."""
    states = making.read(run, "scenario_state")["request_states"]
    assert [state["result"]["success"] for state in states] == [True]
    steps = [steps for _, steps in read_steps(run)]
    assert len(steps) == len(states)
    assert all(1 <= len(step) <= most for step in steps)
