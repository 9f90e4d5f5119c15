"""Tests of judges with this package's API clients, and of judges that reason before their verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig

from helm_longctx.benchmarks.aa_lcr.tasks import score
from helm_longctx.benchmarks.helmet.verdicts import read_answer
from helm_longctx.judging.judge import JudgeReply, JudgeRequest, find_judges
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

VERDICT = {"fluency": 1, "correctness": 3}
REASONED = f'<think>At first: {{"fluency": 0, "correctness": 0}}</think>\n{json.dumps(VERDICT)}'
OPENAI = "helm_longctx.models.apis.OpenAIClient"
ANTHROPIC = "helm_longctx.models.apis.AnthropicClient"


@pytest.fixture
def server() -> Iterator[Server]:
    """Start a model that reasons in its text."""
    with serve(lambda prompt: REASONED) as server:
        yield server


def ask(
    client: str, address: str, parse: Any = read_answer, **arguments: Any
) -> JudgeReply:
    """Return the judge's reply to one question, with HELMET's settings."""
    spec = ClientSpec(client, {"base_url": address, "model": "m", **arguments})
    register_model_deployment(
        ModelDeployment("tests/own", spec, model_name="tests/own")
    )
    Path("cache").mkdir(exist_ok=True)
    (judge,) = find_judges(
        "tests/own", AutoClient({}, "cache", SqliteCacheBackendConfig("cache"))
    )
    return judge.ask(
        JudgeRequest(
            "Judge.",
            parse,
            max_tokens=2048,
            temperature=0.1,
            top_p=0.9,
            seed=42,
            readings=1,
        )
    )


@pytest.mark.parametrize("form", ["chat", "both"])
def test_openai(server: Server, form: str) -> None:
    """Judges get chats, and their reasoning is neither parsed nor kept as the answer."""
    reply = ask(OPENAI, server.openai, form=form, thinking_tokens=1000)
    assert (reply.verdict, reply.text) == (VERDICT, json.dumps(VERDICT))
    (call,) = server.calls
    assert call.path == "/v1/chat/completions"
    assert (call.body["max_tokens"], call.body["seed"], call.body["temperature"]) == (
        3048,
        42,
        0.1,
    )
    assert call.body["messages"] == [{"role": "user", "content": "Judge."}]


def test_parameters_that_the_judge_refuses(server: Server) -> None:
    """Parameters that the judge refuses are left out, and the verdict is read."""
    server.models = {
        "m": Model(refuses=("seed", "top_p"), only_default=("temperature",))
    }
    assert ask(OPENAI, server.openai).verdict == VERDICT
    assert not {"seed", "top_p", "temperature"} & server.calls[-1].body.keys()


def test_anthropic(server: Server) -> None:
    """A judge in Anthropic's protocol gives a verdict."""
    assert ask(ANTHROPIC, server.address).verdict == VERDICT
    assert server.calls[0].path == "/v1/messages"


def test_a_verdict_that_must_be_the_whole_answer() -> None:
    """Reasoning is removed for AA-LCR's verdict, which must be the whole answer."""
    with serve(lambda prompt: "<think>INCORRECT?</think>\n\nCORRECT") as server:
        reply = ask(
            OPENAI, server.openai, parse=lambda text: score({"judge": text}) or None
        )
    assert reply.verdict == {"judge_score": 1.0}
    assert score({"judge": reply.text}) == {"judge_score": 1.0}


def test_reasoning_that_does_not_end(server: Server) -> None:
    """A verdict within unfinished reasoning does not count, and the error says what to do."""
    server.answer = lambda prompt: 2 * f"<think>Perhaps {json.dumps(VERDICT)}"
    server.plan = faults.always(Fault.SHORT)
    reply = ask(OPENAI, server.openai)
    assert (reply.text, reply.verdict) == (None, None)
    assert "within its reasoning; give its deployment thinking_tokens" in str(
        reply.error
    )
