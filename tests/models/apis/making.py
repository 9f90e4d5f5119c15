"""Clients of a local server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helm.common.cache import BlackHoleCacheConfig, CacheConfig
from helm.common.request import Request

from helm_longctx.models.apis import AnthropicClient, OpenAIClient
from helm_longctx.models.apis.client import ProviderClient
from tests.support.servers.llm import Server

REQUEST = Request(model="an/m", prompt="Ist das gut? 好", max_tokens=50, temperature=0)
CHAT = replace(
    REQUEST,
    prompt="",
    messages=[
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "?"},
    ],
)
KINDS = ("chat", "completions", "anthropic")


def make(
    kind: str, server: Server, cache: CacheConfig | None = None, **arguments: Any
) -> ProviderClient:
    """Return Anthropic's client, or OpenAI's client with a form."""
    cache = cache or BlackHoleCacheConfig()
    if kind == "anthropic":
        return AnthropicClient(cache, base_url=server.address, **arguments)
    return OpenAIClient(cache, base_url=server.openai, form=kind, **arguments)
