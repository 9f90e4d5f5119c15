"""Replies that hide a failure, or look like one: what a client and the sender of a run make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from helm.clients.openai_client import OpenAIClient as HelmOpenAIClient
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request, RequestResult

from helm_longctx.failures import Failure
from helm_longctx.helm.patches import apply_patches
from helm_longctx.models.apis import AnthropicClient, OpenAIClient
from helm_longctx.models.apis.sending import Retries, Sender
from helm_longctx.models.results import answer_of, facts_of, failure_of, usage_of
from tests.support.json_http import JsonHandler, serve_handler

REQUEST = Request(model="an/m", prompt="Is it so?", max_tokens=9000, temperature=0)


@dataclass(frozen=True)
class Sent:
    """What the server sends for a request: a status, headers, and a JSON body or a text."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def send_in_turn(*replies: Sent) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve replies in their order, the last one for all further requests. Yield the address and the requests."""
    bodies: list[dict[str, Any]] = []

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802
            bodies.append(self.read_body())
            reply = replies[min(len(bodies), len(replies)) - 1]
            is_text = isinstance(reply.body, str)
            content = (reply.body if is_text else json.dumps(reply.body)).encode()
            self.send_response(reply.status)
            for name, value in {
                "Content-Type": "application/json",
                **reply.headers,
            }.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with serve_handler(Handler) as address:
        yield address, bodies


def reply(text: str | None, finish: str | None = "stop", **fields: Any) -> Sent:
    """Return a reply with one choice, which can have further fields."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": finish, "message": message, **fields}
    return Sent(200, {"object": "chat.completion", "model": "m", "choices": [choice]})


def stream(*events: Any) -> Sent:
    """Return a stream of events."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Sent(
        200,
        "".join([*lines, "data: [DONE]\n\n"]),
        {"Content-Type": "text/event-stream"},
    )


def chunk(text: str, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return an event of a stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish, **fields}
    return {"object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def refusal(
    status: int, message: str, headers: Mapping[str, str] | None = None, **about: Any
) -> Sent:
    """Return an error in OpenAI's form."""
    return Sent(status, {"error": {"message": message, **about}}, headers or {})


def ask(address: str, **settings: Any) -> RequestResult:
    """Send the request as a run does, with three tries, and return the result."""
    client = OpenAIClient(
        BlackHoleCacheConfig(), base_url=address, api_key="k", **settings
    )
    return Sender(client, Retries(3, 0.01))(REQUEST).result


YES = reply("yes")

TEMPORARY = {
    "an error in the choice": reply(
        "", error={"code": 502, "message": "Provider returned error"}
    ),
    "an error in the choice without a code": reply(
        "", error={"message": "Internal server error"}
    ),
    "an error beside half an answer": reply(
        "Hal", error={"code": 502, "message": "Provider gone"}
    ),
    "the provider's reason": reply("", native_finish_reason="network_error"),
    "the provider's reason beside half an answer": reply(
        "Hal", native_finish_reason="abort"
    ),
    "a reason that is an error": reply(
        "", native_finish_reason="upstream_gateway_error"
    ),
    "an error of the whole reply": Sent(
        200, {"error": {"code": 503, "message": "overloaded"}}
    ),
    "MiniMax's limit": Sent(
        200, {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}
    ),
    "throttling": refusal(429, "ThrottlingException: Too many tokens, please wait."),
}


@pytest.mark.parametrize("name", TEMPORARY)
def test_hidden_failures_are_sent_again(name: str) -> None:
    """A reply with the status 200 in which the provider failed is no answer, and the request is sent again."""
    with send_in_turn(TEMPORARY[name], YES) as (address, bodies):
        result = ask(address)
    assert result.completions[0].text == "yes"
    assert len(bodies) == 2


@pytest.mark.parametrize(
    "failed",
    [
        stream(chunk("Hal"), chunk("", "stop", error={"code": 502, "message": "gone"})),
        stream(chunk("", "stop", native_finish_reason="network_error")),
        stream(
            chunk("Hal"), {"error": {"code": 502, "message": "Provider disconnected"}}
        ),
        stream(chunk("Hal", None, error={"code": 502, "message": "gone"})),
    ],
)
def test_hidden_failures_in_streams(failed: Sent) -> None:
    """In a stream the same holds for the events."""
    with send_in_turn(failed, stream(chunk("yes", "stop"))) as (address, bodies):
        result = ask(address, stream=True)
    assert result.completions[0].text == "yes"
    assert len(bodies) == 2


REFUSED = {
    "the provider's filter": reply("", native_finish_reason="PROHIBITED_CONTENT"),
    "a recitation": reply("", "IMAGE_RECITATION"),
    "Google's compatible server": reply(None, "content_filter: PROHIBITED_CONTENT"),
    "DeepSeek": refusal(400, "Content Exists Risk", type="invalid_request_error"),
    "DashScope": refusal(
        400, "Output data may contain …", code="data_inspection_failed"
    ),
    "MiniMax": Sent(
        200, {"base_resp": {"status_code": 1027, "status_msg": "output sensitive"}}
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_filters_are_refusals(name: str) -> None:
    """What a filter refuses is sent once and counted as refused."""
    with send_in_turn(REFUSED[name]) as (address, bodies):
        assert failure_of(ask(address)) is Failure.REFUSED
    assert len(bodies) == 1


@pytest.mark.parametrize(
    "name", ["an answer", "an answer of a provider with another word"]
)
def test_answers_stay_answers(name: str) -> None:
    """A provider's own word for a normal end is no failure."""
    native = {
        "an answer": "stop",
        "an answer of a provider with another word": "COMPLETE_TURN",
    }
    with send_in_turn(reply("yes", native_finish_reason=native[name])) as (address, _):
        assert ask(address).completions[0].text == "yes"


def test_repetition_is_an_answer() -> None:
    """An answer that the server ended because it repeats itself is an answer, and says so."""
    with send_in_turn(reply("the the the AB12CD34", "repetition")) as (address, _):
        result = ask(address)
    assert failure_of(result) is None
    assert result.completions[0].finish_reason["reason"] == "stop"
    assert facts_of(result).is_repeating is True


@pytest.mark.parametrize("header", ["70000", "Fri, 31 Dec 2099 23:59:59 GMT"])
def test_a_long_wait_ends_at_once(header: str) -> None:
    """A wait above the time limit of a request is a quota, with the server's own words, and nothing waits for it."""
    limit = refusal(
        429, "Rate limit exceeded: tries of today.", {"Retry-After": header}
    )
    with send_in_turn(limit) as (address, bodies):
        result = ask(address)
    assert failure_of(result) is Failure.QUOTA
    assert "tries of today" in str(result.error)
    assert "the server allows the next request in" in str(result.error)
    assert len(bodies) == 1


def test_a_long_wait_with_a_client_of_helm() -> None:
    """The same holds for a client of HELM's own, whose errors are seen where it looks into the cache."""
    apply_patches()
    limit = refusal(
        429, "Rate limit exceeded: tries of today.", {"Retry-After": "70000"}
    )
    with send_in_turn(limit) as (address, bodies):
        client = _helm_client(address)
        result = Sender(client, Retries(3, 0.01))(REQUEST).result
    assert failure_of(result) is Failure.QUOTA
    assert "tries of today" in str(result.error)
    assert len(bodies) == 1


COULD_NOT_FINISH = refusal(
    400,
    "Could not finish the message because max_tokens or model output limit was reached. Please try again with"
    " higher max_tokens.",
    type="invalid_request_error",
)


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_message_that_was_not_finished(is_ours: bool) -> None:
    """OpenAI's error for a limit that the reasoning has used up is an empty answer that was cut."""
    with send_in_turn(COULD_NOT_FINISH) as (address, _):
        client = (
            OpenAIClient(BlackHoleCacheConfig(), base_url=address, api_key="k")
            if is_ours
            else _helm_client(address)
        )
        result = Sender(client, Retries(3, 0.01))(REQUEST).result
    assert failure_of(result) is None
    assert result.completions[0].text == ""
    assert answer_of(result).is_any_cut


def _helm_client(address: str) -> HelmOpenAIClient:
    """Return HELM's own client, whose library does not repeat requests."""
    client = HelmOpenAIClient(BlackHoleCacheConfig(), api_key="k", base_url=address)
    client.client = client.client.with_options(max_retries=0)
    return client


@pytest.mark.parametrize(
    ("message", "lowered"),
    [
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        (
            "max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens for m",
            4096,
        ),
        (
            "max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas you provided"
            " 9000.",
            4096,
        ),
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`",
            8192,
        ),
        ("Range of max_tokens should be [1, 8,192]", 8192),
    ],
)
def test_a_budget_above_the_limit(message: str, lowered: int) -> None:
    """An output budget above the model's limit is lowered to the limit that the server names."""
    with send_in_turn(refusal(400, message), YES) as (address, bodies):
        result = ask(address)
    assert result.success
    assert [body["max_tokens"] for body in bodies] == [9000, lowered]


def test_a_budget_is_lowered_once() -> None:
    """A server that refuses the lowered budget, too, gets no third one."""
    words = "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"
    with send_in_turn(refusal(400, words)) as (address, bodies):
        assert failure_of(ask(address)) is Failure.BAD_REQUEST
    assert [body["max_tokens"] for body in bodies] == [9000, 8192]


def test_a_budget_without_a_limit() -> None:
    """If the server does not name its limit, one line names the setting that helps."""
    with send_in_turn(refusal(400, "max_tokens is too large")) as (address, bodies):
        result = ask(address)
    assert failure_of(result) is Failure.BAD_REQUEST
    assert "set max_tokens in the deployment's extra_body" in str(result.error)
    assert len(bodies) == 1


def test_temperature_zero_refused() -> None:
    """A server that wants a positive temperature gets none, which TGI takes for greedy decoding."""
    message = "Input validation error: `temperature` must be strictly positive"
    refused = Sent(422, {"error": message, "error_type": "validation"})
    with send_in_turn(refused, YES) as (address, bodies):
        assert ask(address).success
    assert [body.get("temperature") for body in bodies] == [0, None]


@pytest.mark.parametrize(
    "message",
    [
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "parameter.enable_thinking only support stream call",
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "enable_thinking must be false for non-streaming",
    ],
)
def test_models_that_only_stream(message: str) -> None:
    """A model that only streams is asked for a stream."""
    refused = refusal(400, message, code="invalid_parameter_error")
    with send_in_turn(refused, stream(chunk("yes", "stop"))) as (address, bodies):
        assert ask(address).completions[0].text == "yes"
    assert [body.get("stream") for body in bodies] == [None, True]


def test_json_for_a_stream() -> None:
    """A gateway that answers a request for a stream in one piece has answered."""
    with send_in_turn(YES) as (address, bodies):
        assert ask(address, stream=True).completions[0].text == "yes"
    assert bodies[0]["stream"] is True


ADVICE = [
    (
        "a proxy",
        Sent(
            403,
            "<!DOCTYPE html><html>Access denied</html>",
            {"Content-Type": "text/html"},
        ),
        Failure.UNREACHABLE,
        "HTTPS_PROXY",
    ),
    (
        "OpenRouter",
        refusal(404, "No endpoints found matching your data policy.", code=404),
        Failure.UNKNOWN_MODEL,
        "extra_body",
    ),
    (
        "two user turns",
        refusal(500, "Conversation roles must alternate user/assistant"),
        Failure.BAD_REQUEST,
        "chat template",
    ),
    (
        "a system turn",
        refusal(400, "System role not supported"),
        Failure.BAD_REQUEST,
        "chat template",
    ),
]


@pytest.mark.parametrize(("name", "sent", "kind", "advice"), ADVICE)
def test_one_line_names_the_setting(
    name: str, sent: Sent, kind: Failure, advice: str
) -> None:
    """A failure that a setting ends is sent once, and its one line names the setting."""
    with send_in_turn(sent) as (address, bodies):
        result = ask(address)
    assert failure_of(result) is kind
    assert advice in str(result.error)
    assert "\n" not in str(result.error)
    assert len(bodies) == 1


@pytest.mark.parametrize("last", [{"input_tokens": None}, {"input_tokens": 0}, {}])
def test_streamed_counts_of_anthropic(last: dict[str, Any]) -> None:
    """A last event without a count of the prompt keeps the count of the first one."""
    events = [
        {
            "type": "message_start",
            "message": {"model": "m", "usage": {"input_tokens": 70}},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "yes"},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 5, **last},
        },
    ]
    lines = [
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
    ]
    sent = Sent(200, "".join(lines), {"Content-Type": "text/event-stream"})
    with send_in_turn(sent) as (address, _):
        client = AnthropicClient(
            BlackHoleCacheConfig(),
            base_url=address.removesuffix("/v1"),
            api_key="k",
            stream=True,
        )
        usage = usage_of(client.make_request(REQUEST))
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (70, 5)
