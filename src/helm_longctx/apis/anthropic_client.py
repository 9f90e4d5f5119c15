"""A HELM client for Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import httpx
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_longctx.apis.caching import mark_beginning
from helm_longctx.apis.client import ProviderClient, check_error, check_text, cut_at_stop, turns
from helm_longctx.apis.parameters import ADAPTIVE, Body
from helm_longctx.apis.streams import join_anthropic
from helm_longctx.apis.usage import Usage, with_usage
from helm_longctx.failures import Failure, FailureError, is_refusal

MESSAGES = "/v1/messages"

REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""OpenAI's names of Anthropic's stop reasons, because HELM uses OpenAI's. Other reasons stay as they are."""

LONGEST_IN_ONE_PIECE = 21_333
"""Most tokens of an answer that is not streamed. The package refuses longer ones: by its estimate of 128,000 tokens per
hour they take more than ten minutes, after which networks drop idle connections."""


class AnthropicClient(ProviderClient):
    """Sends messages in Anthropic's protocol. The arguments are those of `ProviderClient`.

    `thinking_tokens` is sent as the budget of extended thinking, or asks for adaptive thinking if the model has no
    budgets; `reasoning_effort` is sent as the effort; without `thinking_tokens` it asks for adaptive thinking.
    """

    package: ClassVar[str] = "anthropic"
    key_prefix: ClassVar[str] = "ANTHROPIC"
    limits_cached_tokens: ClassVar[bool] = False

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return `chat`: Anthropic has no completions."""
        return "chat"

    def route(self, request: Request) -> str:
        """Return the path of messages."""
        return MESSAGES

    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply; see `ProviderClient.parse`."""
        check_error(reply)
        content, reason = reply.get("content"), reply.get("stop_reason")
        if is_refusal(reason):
            raise FailureError(Failure.REFUSED, f"stop_reason: {reason}")
        if not isinstance(content, list) or not isinstance(reason, str):
            raise FailureError(Failure.MALFORMED, "the server's answer has no content or no stop reason")
        thinking = _join_blocks(content, "thinking")
        output = GeneratedOutput(
            text=cut_at_stop(_join_blocks(content, "text") or "", request.stop_sequences),
            logprob=0,
            tokens=[],
            finish_reason={"reason": REASONS.get(reason, reason)},
            thinking=None if thinking is None else Thinking(thinking),
        )
        return with_usage(RequestResult(True, [], [output], False), _usage(reply.get("usage")))

    def _wanted_body(self, request: Request) -> Body:
        check_text(request)
        settings, messages = self.settings, turns(request)
        system = [message["content"] for message in messages if message["role"] == "system"]
        body: Body = {
            "model": settings.model or request.model.partition("/")[2],
            # Anthropic counts the thinking towards `max_tokens`.
            "max_tokens": request.max_tokens + settings.thinking_tokens,
            "messages": mark_beginning(request, [each for each in messages if each["role"] != "system"]),
            "temperature": request.temperature,
        }
        optional = {
            # The protocol has no system role: the text stands in a field of its own.
            "system": "\n\n".join(system) or None,
            # Newer models refuse `top_p` beside `temperature`; 1 is the default, so it need not be sent.
            "top_p": request.top_p if request.top_p != 1 else None,
            "stop_sequences": request.stop_sequences or None,
            "thinking": self._thinking(),
            "output_config": {"effort": settings.reasoning_effort} if settings.reasoning_effort else None,
        }
        body |= {name: value for name, value in optional.items() if value is not None}
        return {**body, **(settings.extra_body or {})}

    def _thinking(self) -> Body | None:
        if self.settings.thinking_tokens:
            return {"type": "enabled", "budget_tokens": self.settings.thinking_tokens}
        return ADAPTIVE if self.settings.reasoning_effort else None

    def _make_library(self, **options: Any) -> Any:
        import anthropic

        self._has_key = bool(options["api_key"])
        return self._remove_token(anthropic.Anthropic(**options))

    def _copy_library(self, library: Any, http_client: httpx.Client) -> Any:
        return self._remove_token(super()._copy_library(library, http_client))

    def _remove_token(self, library: Any) -> Any:
        if self._has_key:
            # Older versions of the package, such as 0.97, would also send the token in ANTHROPIC_AUTH_TOKEN, which they
            # read again for each copy.
            library.auth_token = None
        return library

    def _stream_fields(self, body: Body) -> Body:
        streams = self.settings.stream or body.get("stream") or body["max_tokens"] > LONGEST_IN_ONE_PIECE
        return {"stream": True} if streams else {}

    def _join(self, events: Iterable[Any]) -> Body:
        return join_anthropic(events)


def _join_blocks(content: list[Any], kind: str) -> str | None:
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
