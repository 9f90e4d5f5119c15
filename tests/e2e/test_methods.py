"""Tests of run entries with methods on a local server: what is sent, what the runs are called, and their comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.tasks.methods.prompts import FACT_TOKENS, FACTS
from tests.support.programs import run
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

SAMPLES = 4
CONFIG = """\
suite: methods
tasks:
- helmet_recall:task=json_kv
- helmet_recall:task=json_kv,method=retrieve,chunks=2,chunk_size=700
- helmet_recall:task=json_kv,method=retrieve_reason
- helmet_recall:task=json_kv,method=closed_book
lengths: [8k]
arguments: {{num_samples: 4}}
models:
  - {{name: my/tiny, url: {address}, model: tiny, type: chat, api_key_env: MY_KEY, context: 32k}}
limits: {{request_timeout: 600, max_retries: 0}}
parallelism: 2
"""
PLAIN = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=my_tiny"
RETRIEVE = "helmet_recall:task=json_kv,length=8k,num_samples=4,method=retrieve,chunks=2,chunk_size=700,model=my_tiny"
REASON = "helmet_recall:task=json_kv,length=8k,num_samples=4,method=retrieve_reason,model=my_tiny"
CLOSED = "helmet_recall:task=json_kv,length=8k,num_samples=4,method=closed_book,model=my_tiny"


def find_pair(prompt: str) -> re.Match[str] | None:
    """Return the pair of key and value that a prompt asks for; None if the prompt lacks it."""
    keys = re.findall(r"^Key: (\S+)$", prompt, re.MULTILINE)
    return re.search(rf'"{keys[-1]}": "(\S+)"', prompt) if keys else None


def answer(prompt: str) -> str:
    """Return facts if they are asked for, and the value if the prompt is short; else nothing useful."""
    pair = find_pair(prompt)
    if prompt.endswith(FACTS):
        return f"<think>Hm.</think>{pair[0]} [JSON data]" if pair else "none"
    return pair[1] if pair and len(prompt) < 3000 else "unknown"


def states(folder: Path, name: str) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"benchmark_output/runs/methods/{name}/scenario_state.json")
    return json.loads(path.read_text())["request_states"]


def command(folder: Path, server: Server, *options: str) -> str:
    """Run the configuration, and return what it prints."""
    (folder / "run.yaml").write_text(CONFIG.format(address=server.address))
    done = run("helm-longctx", "run", "run.yaml", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_question(prompt: str) -> bool:
    """Whether a prompt is of a run; others ask what the server offers."""
    return "Extract the value" in prompt


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with prices and a key."""
    monkeypatch.setenv("MY_KEY", "sk-mine-0123456789abcdef")
    monkeypatch.setenv("HELM_LONGCTX_PRICES", str(tmp_path / "prices.yaml"))
    (tmp_path / "prices.yaml").write_text("my/tiny: {input: 1, output: 10}\n")
    return tmp_path


def test_methods_from_the_estimate_to_the_comparison(folder: Path) -> None:
    """Each method sends its own prompts, has runs and columns of its own, and is compared with plain prompts."""
    with serve(answer, models={"tiny": Model()}) as server:
        planned = command(folder, server, "--dry-run")
        assert planned.startswith(
            f"4 runs:\n  {PLAIN}\n  {RETRIEVE}\n  {REASON}\n  {CLOSED}\n"
        )
        printed = command(folder, server)
        sent = [call.prompt for call in server.calls if is_question(call.prompt)]
        assert len(sent) == 5 * SAMPLES
        server.forget()
        assert command(folder, server) == printed
        assert not any(is_question(call.prompt) for call in server.calls)
    check_runs(folder, sent)
    check_tables(folder, printed)


def check_runs(folder: Path, sent: list[str]) -> None:
    """Check the requests of each run."""
    plain = states(folder, PLAIN)
    facts = states(folder, REASON)
    assert {state["request"]["max_tokens"] for state in facts} == {FACT_TOKENS}
    for before, after in zip(plain, facts, strict=True):
        assert before["instance"]["id"] == after["instance"]["id"]
        last, first = after["result"]["completions"]
        assert last["text"] == before["instance"]["references"][0]["output"]["text"]
        assert first["text"].endswith("[JSON data]")
    assert sum(prompt.endswith(FACTS) for prompt in sent) == SAMPLES
    # The second request has the facts without the reasoning, and nothing else of the context.
    short = [prompt for prompt in sent if "[JSON data]" in prompt]
    assert len(short) == SAMPLES
    assert all("<think>" not in prompt and len(prompt) < 1000 for prompt in short)
    assert {state["result"]["completions"][0]["text"] for state in plain} == {"unknown"}


def check_tables(folder: Path, printed: str) -> None:
    """Check the marks of the scores, and the comparison."""
    for name in (
        "method=retrieve chunks=2 chunk_size=700",
        "method=retrieve_reason",
        "method=closed_book",
    ):
        assert name in re.sub(r"[│\s]+", " ", printed)
    assert "asked by the method retrieve_reason" in printed
    done = run(
        "helm-longctx",
        "compare",
        "--methods",
        "--suite",
        "methods",
        "--json",
        "gains.json",
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "my/tiny: methods" in done.stdout
    gains = {
        gain["method"]: gain
        for gain in json.loads((folder / "gains.json").read_text())["gains"]
    }
    assert set(gains) == {
        "method=retrieve chunks=2 chunk_size=700",
        "method=retrieve_reason",
        "method=closed_book",
    }
    reason = gains["method=retrieve_reason"]
    assert reason["comparison"]["effect"]["mean"] == 1.0
    assert (reason["costs"]["score"], reason["plain"]["score"]) == (1.0, 0.0)
    # Both requests are paid for; the first one reads the whole context.
    assert (
        reason["costs"]["tokens"]
        > reason["plain"]["tokens"]
        > gains["method=closed_book"]["costs"]["tokens"]
    )
    assert reason["costs"]["dollars_per_point"] == pytest.approx(
        SAMPLES * reason["costs"]["dollars"] / 100
    )
    assert reason["plain"]["dollars_per_point"] is None
    assert gains["method=retrieve chunks=2 chunk_size=700"]["costs"]["score"] == 1.0
