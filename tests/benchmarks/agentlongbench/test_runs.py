"""Logs of agents are sent to servers as they are, in OpenAI's and in Anthropic's protocol, and stored whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.run_settings import MIRROR
from helm_longctx.runs.prompts import read_prompts
from tests.benchmarks.agentlongbench.fabricate import build_agentlongbench, make_rows
from tests.runner import making
from tests.runner.scripted_runs import MODEL, scores
from tests.support.deployments import register_server
from tests.support.servers.llm import serve

ENTRY = "agentlongbench_kf_v:task=intersection,length=32k"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the fabricated files."""
    build_agentlongbench(tmp_path / "data")
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))


def test_a_log_in_the_protocol_of_openai(tmp_path: Path) -> None:
    """The body has the messages of the file, the run stores them whole, and the answer is scored."""
    rows = make_rows("kf-v", "intersection")
    with serve(lambda prompt: "<answer>['0639']</answer>") as server:
        register_server("corp/scripted", server.address)
        run = making.make_run(tmp_path, ENTRY + MODEL, cache=False)
    assert len(server.bodies) == len(rows)
    for body, row in zip(server.bodies, rows, strict=True):
        assert body["messages"][1:-1] == row["messages"][1:]
        assert body["messages"][-1] == {"role": "user", "content": row["question"]}
        assert "tools" not in body
    stored = [json.loads(text) for _, text in read_prompts(run)]
    assert [body["messages"] for body in server.bodies] == stored
    assert len(scores(run)) == len(rows)


def test_a_log_in_the_protocol_of_anthropic(tmp_path: Path) -> None:
    """Calls and results are blocks, and the tool is defined by name and may not be called."""
    with serve(lambda prompt: "<answer>0639</answer>") as server:
        register_server("corp/scripted", server.address, client="AnthropicClient")
        run = making.make_run(tmp_path, ENTRY + MODEL, cache=False)
    body = server.bodies[0]
    assert body["tools"] == [{"name": "query", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}
    _, call, result, *_ = body["messages"]
    (use,) = call["content"]
    assert use["input"] == {"section": "é", "value": 1}
    assert result["content"][0]["tool_use_id"] == use["id"]
    assert len(scores(run)) == 2
