"""A HELM client for Anthropic's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_longctx.apis.client import Body, ProviderClient, check_text, cut_at_stop, timeouts, turns
from helm_longctx.apis.usage import Usage, with_usage
from helm_longctx.failures import Failure, FailureError, failure_of_text, is_refusal

MESSAGES = "/v1/messages"

REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""Anthropic's stop reasons in OpenAI's words, which HELM uses; the others stay."""


class AnthropicClient(ProviderClient):
    """Sends messages in Anthropic's protocol. The arguments are those of `ProviderClient`."""

    package = "anthropic"

    def _make_library(self, api_key: str | None, base_url: str | None) -> Any:
        import anthropic

        library = anthropic.Anthropic(
            api_key=api_key,
            base_url=base_url,
            default_headers=self.settings.headers,
            timeout=timeouts(self.settings, anthropic.Timeout),
            max_retries=0,  # the runner and the judges retry
        )
        if api_key:
            library.auth_token = None  # the package would also send the token in ANTHROPIC_AUTH_TOKEN
        return library

    def route(self, request: Request) -> str:
        """Return the path of messages."""
        return MESSAGES

    def body(self, request: Request) -> Body:
        """Return the JSON body of a request exactly as it is sent, without the fields that ask for a stream."""
        check_text(request)
        settings, messages = self.settings, turns(request)
        system = [message["content"] for message in messages if message["role"] == "system"]
        body: Body = {
            "model": settings.model or request.model.partition("/")[2],
            "max_tokens": request.max_tokens + settings.thinking_tokens,
            "messages": [message for message in messages if message["role"] != "system"],
            "temperature": request.temperature,
        }
        optional = {
            "system": "\n\n".join(system) or None,
            "top_p": request.top_p if request.top_p != 1 else None,
            "stop_sequences": request.stop_sequences or None,
            "output_config": {"effort": settings.reasoning_effort} if settings.reasoning_effort else None,
            "thinking": _thinking(settings.thinking_tokens) if settings.thinking_tokens else None,
        }
        body |= {name: value for name, value in optional.items() if value is not None}
        return {**body, **(settings.extra_body or {})}

    def _post(self, request: Request, body: Body) -> Body:
        import httpx

        response = self.client.post(MESSAGES, cast_to=httpx.Response, content=orjson.dumps(body))
        reply: Body = orjson.loads(response.content)
        return reply

    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply; see `ProviderClient.parse`."""
        if error := reply.get("error"):
            raise FailureError(failure_of_text(str(error)), f"the server answered with an error: {error}")
        content, reason = reply.get("content"), reply.get("stop_reason")
        if is_refusal(reason):
            raise FailureError(Failure.REFUSED, f"stop_reason: {reason}")
        if not isinstance(content, list):
            raise FailureError(Failure.MALFORMED, "the server's answer has no content")
        finish = REASONS.get(str(reason), reason or "unknown")
        text, thinking = _join(content, "text"), _join(content, "thinking")
        if text is None and finish != "length":
            raise FailureError(Failure.MALFORMED, f"the server's answer has no text (stop_reason: {reason})")
        output = GeneratedOutput(
            text=cut_at_stop(text or "", request.stop_sequences),
            logprob=0,
            tokens=[],
            finish_reason={"reason": finish},
            thinking=None if thinking is None else Thinking(thinking),
        )
        return with_usage(RequestResult(True, [], [output], False), _usage(reply.get("usage")))


def _thinking(tokens: int) -> Body:
    return {"type": "enabled", "budget_tokens": tokens}


def _join(content: list[Any], kind: str) -> str | None:
    """Join the texts of the blocks of a kind; None if there is no such block."""
    blocks = [block for block in content if isinstance(block, Mapping) and block.get("type") == kind]
    return "".join(str(block.get(kind) or "") for block in blocks) if blocks else None


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    details = usage.get("output_tokens_details") or {}
    return Usage(
        input_tokens=(usage.get("input_tokens") or 0) + read + written,  # Anthropic does not count cached tokens here
        cached_tokens=read,
        cache_write_tokens=written,
        output_tokens=usage.get("output_tokens") or 0,
        reasoning_tokens=details.get("thinking_tokens") or 0,
    )
