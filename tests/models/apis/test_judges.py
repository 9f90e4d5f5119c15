"""Our clients as clients of judges: keys that judging hands over, OAuth tokens, seeds and time limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig

from helm_longctx.errors import InputError
from helm_longctx.judging.calls import TIMEOUT, WAIT
from helm_longctx.judging.judge import JudgeRequest, find_judges
from helm_longctx.judging.keys.find import find_key
from tests.servers import faults
from tests.servers.faults import Fault
from tests.servers.llm import Server, serve

REQUEST = JudgeRequest("Is it?", lambda reply: {"score": reply}, max_tokens=10, temperature=0.1, top_p=0.9, seed=42)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda prompt: "5") as running:
        yield running


def deploy(name: str, client: str, **arguments: Any) -> str:
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    spec = ClientSpec(f"helm_longctx.apis.{client}", arguments)
    register_model_deployment(ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical"))
    return name


def ask(name: str, folder: Path) -> Any:
    client = AutoClient({}, str(folder), SqliteCacheBackendConfig(str(folder)))
    (judge,) = find_judges(name, client)
    return judge.ask(REQUEST)


@pytest.mark.parametrize("protocol", ["OpenAIClient", "AnthropicClient"])
def test_a_judges_own_key(protocol: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge's key is sent, with its seed where the protocol has one; the verdict is cached."""
    monkeypatch.setenv("GPT_JUDGE_API_KEY", "sk-of-the-judge")
    monkeypatch.setenv(TIMEOUT, "7")
    address = server.openai if protocol == "OpenAIClient" else server.address
    name = deploy("somewhere/gpt-judge", protocol, base_url=address)
    replies = [ask(name, tmp_path) for _ in range(2)]
    assert [(reply.verdict, len(reply.usages)) for reply in replies] == [({"score": "5"}, 1), ({"score": "5"}, 0)]
    (call,) = server.calls
    assert call.key.removeprefix("Bearer ") == "sk-of-the-judge"
    assert call.body.get("seed") == (42 if protocol == "OpenAIClient" else None)
    assert call.body["top_p"] == 0.9


def test_a_judge_that_fails(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that fails for a time is repeated by judging alone, and one that is refused is not."""
    monkeypatch.setenv(WAIT, "0.01")
    name = deploy("somewhere/judge", "OpenAIClient", base_url=server.openai)
    server.plan = faults.first(Fault.SERVER_ERROR, Fault.RATE_LIMIT)
    assert ask(name, tmp_path).verdict == {"score": "5"}
    assert [call.fault for call in server.calls] == [Fault.SERVER_ERROR, Fault.RATE_LIMIT, None]
    server.forget()
    server.plan = faults.always(Fault.FLAGGED)
    reply = ask(deploy("somewhere/judge", "OpenAIClient", base_url=server.openai, model="other"), tmp_path)
    assert reply.verdict is None
    assert "refused" in str(reply.error)
    assert len(server.calls) == 1


def test_which_keys_are_looked_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's variable counts for the provider's own address alone; an address of its own may need no key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    name = deploy("openai/gpt-judge", "OpenAIClient")
    with pytest.raises(InputError, match="GPT_JUDGE_API_KEY, OPENAI_API_KEY"):
        find_key(DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT[name], {})
    for arguments in ({"base_url": server.openai}, {"api_key_env": "A_KEY"}):
        name = deploy("somewhere/gpt-judge", "OpenAIClient", **arguments)
        assert find_key(DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT[name], {}) is None
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    name = deploy("elsewhere/gpt-judge", "OpenAIClient", base_url=server.openai)
    assert find_key(DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT[name], {}) is None
