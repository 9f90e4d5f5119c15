"""Our clients as clients of judges: keys that judging hands over, OAuth tokens, seeds and time limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
)

from helm_longctx.errors import InputError
from helm_longctx.judging.keys.client import find_key
from helm_longctx.run_settings import JUDGE_TIMEOUT, JUDGE_WAIT
from tests.support.judges import ask, deploy
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda prompt: "5") as running:
        yield running


@pytest.mark.parametrize("protocol", ["OpenAIClient", "AnthropicClient"])
def test_a_judges_own_key(
    protocol: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge's key is sent, and a seed if the protocol has one. The verdict is cached."""
    monkeypatch.setenv("GPT_JUDGE_API_KEY", "sk-of-the-judge")
    monkeypatch.setenv(JUDGE_TIMEOUT, "7")
    address = server.openai if protocol == "OpenAIClient" else server.address
    name = deploy("somewhere/gpt-judge", protocol, base_url=address)
    replies = [ask(name, tmp_path) for _ in range(2)]
    assert [(reply.verdict, len(reply.usages)) for reply in replies] == [
        ({"score": "5"}, 1),
        ({"score": "5"}, 0),
    ]
    (call,) = server.calls
    assert call.key.removeprefix("Bearer ") == "sk-of-the-judge"
    assert call.body.get("seed") == (42 if protocol == "OpenAIClient" else None)
    assert call.body["top_p"] == 0.9


@pytest.mark.parametrize(
    ("protocol", "arguments", "sent"),
    [
        (
            "OpenAIClient",
            {},
            {
                "messages": [
                    {"role": "system", "content": "Grade."},
                    {"role": "user", "content": "Is it?"},
                ]
            },
        ),
        (
            "AnthropicClient",
            {},
            {"system": "Grade.", "messages": [{"role": "user", "content": "Is it?"}]},
        ),
        ("OpenAIClient", {"form": "completions"}, {"prompt": "Grade.Is it?"}),
    ],
)
def test_a_system_message(
    protocol: str,
    arguments: dict[str, str],
    sent: dict[str, object],
    server: Server,
    tmp_path: Path,
) -> None:
    """A judge gets a system message where its protocol has one; otherwise it stands before the prompt."""
    address = server.openai if protocol == "OpenAIClient" else server.address
    name = deploy("somewhere/judge", protocol, base_url=address, **arguments)
    assert ask(name, tmp_path, system="Grade.").verdict == {"score": "5"}
    (body,) = server.bodies
    assert {
        key: body[key] for key in ("system", "messages", "prompt") if key in body
    } == sent


def test_a_judge_that_fails(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the module for judging repeats a call that fails for a time. A call that is refused is not repeated."""
    monkeypatch.setenv(JUDGE_WAIT, "0.01")
    name = deploy("somewhere/judge", "OpenAIClient", base_url=server.openai)
    server.plan = faults.first(Fault.SERVER_ERROR, Fault.RATE_LIMIT)
    assert ask(name, tmp_path).verdict == {"score": "5"}
    assert [call.fault for call in server.calls] == [
        Fault.SERVER_ERROR,
        Fault.RATE_LIMIT,
        None,
    ]
    server.forget()
    server.plan = faults.always(Fault.FLAGGED)
    reply = ask(
        deploy(
            "somewhere/judge", "OpenAIClient", base_url=server.openai, model="other"
        ),
        tmp_path,
    )
    assert reply.verdict is None
    assert "refused" in str(reply.error)
    assert len(server.calls) == 1


def test_which_keys_are_looked_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package's variable is only used for the provider's own address. Another address may need no key."""
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
