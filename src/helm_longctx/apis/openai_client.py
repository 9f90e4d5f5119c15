"""A HELM client for OpenAI's protocol: chat completions and completions, of OpenAI and of any compatible server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from helm.common.cache import CacheConfig
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking

from helm_longctx.apis.client import ProviderClient, check_error, check_text, cut_at_stop, turns
from helm_longctx.apis.nvcf import FunctionCalls
from helm_longctx.apis.parameters import Body
from helm_longctx.apis.streams import join_openai
from helm_longctx.apis.usage import Usage, with_usage
from helm_longctx.errors import bad_argument
from helm_longctx.failures import Failure, FailureError, is_refusal

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

FORMS = {"chat": "chat", "completions": "completion", "both": "both"}
"""The allowed values of `form`, and the form of the prompt for each of them."""


class OpenAIClient(ProviderClient):
    """Sends chats and completions in OpenAI's protocol.

    Args:
        cache_config, api_key, base_url, settings: see `ProviderClient`.
        org_id: OpenAI's organization; HELM takes it from its credentials file.
        form: `chat` sends every request as a chat, `completions` as a completion. With `both`, a request that
            has `messages`, which can be an empty list, is sent as a chat, and any other as a completion.
        nvcf: whether `base_url` is a function in NVIDIA Cloud Functions.

    Raises:
        InputError: `form` is not allowed, `base_url` is not the address of a function, or see `ProviderClient`.
    """

    package: ClassVar[str] = "openai"
    key_prefix: ClassVar[str] = "OPENAI"
    address_part: ClassVar[str] = "/v1"

    def __init__(
        self,
        cache_config: CacheConfig,
        api_key: str | None = None,
        base_url: str | None = None,
        org_id: str | None = None,
        form: str = "chat",
        nvcf: bool = False,
        **settings: Any,
    ):
        self._form, self._org_id = self.request_form({"form": form}), org_id
        self._auth = FunctionCalls(base_url) if nvcf else None
        super().__init__(cache_config, api_key, base_url, **settings)

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return what a client with these arguments sends: `chat`, `completion`, or `both` if each request decides.

        Raises:
            InputError: `form` is not allowed.
        """
        form = arguments.get("form", "chat")
        if form not in FORMS:
            raise bad_argument(cls.__name__, "form", form, FORMS)
        return FORMS[form]

    def route(self, request: Request) -> str:
        """Return the path of chats or of completions."""
        is_completion = request.messages is None if self._form == "both" else self._form == "completion"
        return COMPLETIONS if is_completion else CHAT

    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply; see `ProviderClient.parse`."""
        check_error(reply)
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices:
            raise FailureError(Failure.MALFORMED, "the server's answer has no choices")
        return with_usage(_answer(request, choices[0]), _usage(reply.get("usage")))

    def _wanted_body(self, request: Request) -> Body:
        check_text(request)
        settings, chats = self.settings, self.route(request) == CHAT
        if not chats and request.messages:
            raise FailureError(Failure.BAD_REQUEST, "messages cannot be sent as a completion; allowed: form=both")
        body: Body = {"model": settings.model or request.model.partition("/")[2]}
        body |= {"messages": turns(request)} if chats else {"prompt": request.prompt}
        body |= {"max_tokens": request.max_tokens + settings.thinking_tokens, "temperature": request.temperature}
        optional = {
            # Without sampling `top_p` has no effect. It is not sent, because some servers refuse it.
            "top_p": request.top_p if request.temperature else None,
            "presence_penalty": request.presence_penalty or None,
            "frequency_penalty": request.frequency_penalty or None,
            "stop": request.stop_sequences or None,
            # Only requests to judges have a seed (`judging.judge.SeededRequest`); HELM's class has no such field.
            "seed": getattr(request, "seed", None),
            # The route of completions does not know the parameter.
            "reasoning_effort": settings.reasoning_effort if chats else None,
        }
        body |= {name: value for name, value in optional.items() if value is not None}
        return {**body, **(settings.extra_body or {})}

    def _make_library(self, **options: Any) -> Any:
        import openai

        return openai.OpenAI(organization=self._org_id, **options)

    def _stream_fields(self, body: Body) -> Body:
        streams = self.settings.stream or body.get("stream")
        return {"stream": True, "stream_options": {"include_usage": True}} if streams else {}

    def _join(self, events: Iterable[Any]) -> Body:
        return join_openai(events)


def _answer(request: Request, choice: Body) -> RequestResult:
    message = choice.get("message") or {}
    reason, text = choice.get("finish_reason"), message.get("content", choice.get("text"))
    if is_refusal(reason) or message.get("refusal"):
        raise FailureError(Failure.REFUSED, f"{reason}: {message.get('refusal') or 'the answer was removed'}")
    # DeepSeek names the field `reasoning_content`, OpenRouter and newer versions of vLLM `reasoning`.
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if text is None and (reason == "length" or reasoning):
        text = ""  # the answer is only reasoning
    if not isinstance(text, str):
        raise FailureError(Failure.MALFORMED, "the server's answer has no text: its content is null or of another type")
    output = GeneratedOutput(
        text=cut_at_stop(text, request.stop_sequences),
        logprob=0,
        tokens=[],
        finish_reason={"reason": reason or "unknown"},
        thinking=Thinking(reasoning) if isinstance(reasoning, str) else None,
    )
    return RequestResult(True, [], [output], False)


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    prompt, details = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    read, total = usage.get("prompt_tokens") or 0, usage.get("total_tokens") or 0
    return Usage(
        input_tokens=read,
        cached_tokens=prompt.get("cached_tokens") or 0,
        cache_write_tokens=prompt.get("cache_write_tokens") or 0,
        # Some servers count reasoning only in the total.
        output_tokens=max(usage.get("completion_tokens") or 0, total - read),
        reasoning_tokens=details.get("reasoning_tokens") or 0,
    )
