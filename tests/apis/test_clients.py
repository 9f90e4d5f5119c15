"""The clients against a server that speaks both protocols."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request

from helm_longctx.apis import AnthropicClient, OpenAIClient
from helm_longctx.apis.usage import Usage, usage_of
from tests.servers.llm import Server, serve

REQUEST = Request(model="an/organization/model", prompt="Ist das gut? 好", max_tokens=9, temperature=0)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda prompt: f"{prompt} Yes, it is.") as running:
        yield running


def make(kind: str, server: Server, **arguments: Any) -> Any:
    if kind == "anthropic":
        return AnthropicClient(BlackHoleCacheConfig(), base_url=server.address, **arguments)
    return OpenAIClient(BlackHoleCacheConfig(), base_url=server.openai, **{"form": kind, **arguments})


@pytest.mark.parametrize("kind", ["chat", "completions", "both", "anthropic"])
def test_answers(kind: str, server: Server) -> None:
    """Each form is sent to its path, and the answer comes with its tokens."""
    client = make(kind, server)
    result = client.make_request(REQUEST)
    assert result.success, result.error
    assert result.completions[0].text == "Ist das gut? 好 Yes, it is."
    assert usage_of(result) == Usage(input_tokens=1, output_tokens=1)
    (call,) = server.calls
    assert call.path == client.route(REQUEST)
    assert call.body == client.body(REQUEST)
