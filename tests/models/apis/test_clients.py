"""The clients against a server that speaks both protocols: what is sent, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from helm.common.cache import SqliteCacheConfig
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.apis import AnthropicClient, OpenAIClient
from helm_longctx.models.apis.caching import with_beginning
from helm_longctx.models.apis.transport import NO_KEY, Transport
from helm_longctx.models.results import (
    answer_of,
    facts_of,
    failure_of,
    parse_result,
    usage_of,
)
from helm_longctx.tasks.answer import Usage
from tests.judging.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServer,
    serve_tokens,
)
from tests.models.apis.making import CHAT, KINDS, REQUEST, make
from tests.support.http import HTTP
from tests.support.servers import faults, hostile
from tests.support.servers.faults import Fault
from tests.support.servers.hostile import WHOLE, attack
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

MEMORY = Path("/proc/self/statm")
ANSWER = "Ist das gut? 好 Yes, it is."


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(
        lambda prompt: f"{prompt} Yes, it is.", models={"m": Model()}
    ) as running:
        yield running


def text(result: RequestResult) -> str:
    assert result.success, result.error
    return result.completions[0].text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind: str, stream: bool, server: Server) -> None:
    """Each form is sent to its path as `body` says. The result has the answer, its tokens and what was sent."""
    client = make(kind, server, stream=stream)
    result = client.make_request(replace(REQUEST, stop_sequences=["is."]))
    assert text(result) == "Ist das gut? 好 Yes, it "
    assert result.completions[0].finish_reason["reason"] == "stop"
    assert usage_of(result) == Usage(input_tokens=4, output_tokens=7)
    assert not answer_of(result).is_any_cut
    (call,) = server.calls
    body = client.body(replace(REQUEST, stop_sequences=["is."]))
    assert call.path == client.route(REQUEST)
    assert {
        name: value
        for name, value in call.body.items()
        if not name.startswith("stream")
    } == body
    assert call.body.get("stream", False) == stream
    sent = {
        name: value
        for name, value in call.body.items()
        if name not in ("messages", "prompt")
    }
    assert facts_of(result).sent == sent


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_of_the_first_piece(kind: str, server: Server) -> None:
    """The time until the first piece of an answer is measured if the answer is streamed, and is kept in the cache."""
    server.delay = 0.2
    assert (
        facts_of(make(kind, server).make_request(REQUEST)).first_token_seconds is None
    )
    client = make(kind, server, stream=True)
    result = client.make_request(REQUEST)
    first = facts_of(result).first_token_seconds
    assert result.request_time
    assert first
    assert 0.2 <= first <= result.request_time


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_same_result(kind: str, server: Server) -> None:
    """`make_request` uses `body`, `route` and `result`, so a reply that arrives in another way has the same result."""
    client = make(kind, server)
    other = make(kind, server)
    result = client.make_request(REQUEST)
    reply = json.loads(
        json.dumps(_reply(server, client.route(REQUEST), client.body(REQUEST)))
    )
    parsed = other.result(REQUEST, reply)
    assert (
        replace(
            parsed,
            request_time=result.request_time,
            request_datetime=result.request_datetime,
        )
        == result
    )


def _reply(server: Server, path: str, body: dict[str, Any]) -> Any:
    return HTTP.post(f"{server.address}{path}", json=body).json()


def test_conversations(server: Server) -> None:
    """OpenAI's protocol has system messages in the list of messages. Anthropic's protocol has them in a field of their own."""
    make("chat", server).make_request(CHAT)
    make("anthropic", server).make_request(CHAT)
    assert server.calls[0].body["messages"] == CHAT.messages
    assert server.calls[1].body["messages"] == CHAT.messages[1:]
    assert server.calls[1].body["system"] == "Be brief."
    assert (
        failure_of(make("completions", server).make_request(CHAT))
        is Failure.BAD_REQUEST
    )


def test_both_forms(server: Server) -> None:
    """A request with messages is a chat, also if the list of messages is empty. Any other request is a completion."""
    client = make("both", server)
    for request in (REQUEST, replace(REQUEST, messages=[]), CHAT):
        client.make_request(request)
    assert [call.path for call in server.calls] == [
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert server.calls[0].body["prompt"] == REQUEST.prompt
    assert server.calls[1].body["messages"] == [
        {"role": "user", "content": REQUEST.prompt}
    ]


def test_arguments(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests have the model's name, headers and fields of the arguments, and a key from the variable that they name."""
    monkeypatch.setenv("A_KEY", "sk-of-a-variable")
    client = make(
        "chat",
        server,
        model="n",
        api_key_env="A_KEY",
        extra_body={"top_k": 1},
        reasoning_effort="low",
    )
    server.models = {"n": Model()}
    assert client.make_request(
        replace(REQUEST, temperature=0.5, top_p=0.9, presence_penalty=1)
    ).success
    (call,) = server.calls
    assert call.key == "Bearer sk-of-a-variable"
    expected = {
        "model": "n",
        "temperature": 0.5,
        "top_p": 0.9,
        "presence_penalty": 1,
        "top_k": 1,
    }
    assert expected.items() <= call.body.items()
    assert call.body["reasoning_effort"] == "low"
    with pytest.raises(InputError, match="form='completion' is invalid"):
        OpenAIClient(None, form="completion")
    with pytest.raises(InputError, match="tokens_per_minute=0 is invalid"):
        make("chat", server, tokens_per_minute=0)
    with pytest.raises(InputError, match="argument='max_retry' is invalid"):
        make("chat", server, max_retry=3)
    with pytest.raises(InputError, match="NO_SUCH_KEY is not set"):
        make("chat", server, api_key_env="NO_SUCH_KEY")


def test_keys_stay_with_their_provider(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is not the provider's never gets the provider's key from the packages' variables."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-of-the-provider")
    for kind in KINDS:
        assert make(kind, server).make_request(REQUEST).success
        assert make(kind, server, api_key="sk-own").make_request(REQUEST).success
    assert {call.key.removeprefix("Bearer ") for call in server.calls} == {"", "sk-own"}
    assert (
        OpenAIClient(None).client.api_key
        == AnthropicClient(None).client.api_key
        == "sk-of-the-provider"
    )


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenServer]:
    """Start a token server, and name it in the variables of OpenAI's host."""
    with serve_tokens() as running:
        values = {
            "CLIENT_ID": CLIENT_ID,
            "CLIENT_SECRET": CLIENT_SECRET,
            "TOKEN_URL": f"{running.url}/token",
        }
        for name, value in values.items():
            monkeypatch.setenv(f"OPENAI_{name}", value)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider")
        yield running


def test_a_key_is_sent_without_the_token_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anthropic's package reads ANTHROPIC_AUTH_TOKEN for each copy of a client, and a deployment's own key comes first."""
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a-token-of-the-environment")
    with attack(hostile.send(WHOLE["anthropic"])) as server:
        for key in ("sk-own-0123456789", None):
            client = AnthropicClient(None, api_key=key, base_url=server.address)
            assert client.ask(REQUEST)
            client.client = client.client.with_options(timeout=5)
            assert client.ask(REQUEST)
        own = {"Authorization": "Bearer $ANTHROPIC_AUTH_TOKEN"}
        assert AnthropicClient(None, None, server.address, headers=own).ask(REQUEST)
    sent = ["a-token-of-the-environment" in request for request in server.seen]
    assert sent == [False, False, False, False, True]
    assert ["sk-own-0123456789" in request for request in server.seen[:4]] == [
        True,
        True,
        False,
        False,
    ]


def test_tokens_of_models(server: Server, tokens: TokenServer) -> None:
    """All requests to an address carry one token, which is renewed when it is refused, and a key of an argument wins."""
    server.accepts = lambda key: (
        key.removeprefix("Bearer ") in {*tokens.tokens} - tokens.lost
    )
    for kind in ("chat", "completions", "both"):
        client = make(kind, server)
        assert client.make_request(REQUEST).success
    assert len(tokens.asked) == 1
    for number in range(2):
        tokens.lost |= {*tokens.tokens}
        assert client.make_request(replace(REQUEST, prompt=f"again {number}")).success
    assert len(tokens.asked) == 3
    server.accepts = lambda key: key == "Bearer sk-own"
    assert make("chat", server, api_key="sk-own").make_request(REQUEST).success
    refused = client.make_request(replace(REQUEST, prompt="refused"))
    assert failure_of(refused) is Failure.BAD_KEY
    assert not any(token in str(refused.error) for token in tokens.tokens)
    assert (
        failure_of(client.make_request(replace(REQUEST, prompt="refused again")))
        is Failure.BAD_KEY
    )
    assert len(tokens.asked) == 4


def test_tokens_stay_on_safe_addresses(
    tokens: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A token is not sent in the clear to another machine, and a warning says why the address gets none."""
    client = OpenAIClient(None, base_url="http://192.0.2.1/v1")
    assert client.client.api_key == NO_KEY
    assert (
        "http://192.0.2.1/v1 gets no token of OPENAI_CLIENT_ID, because a token is only sent over https"
        in caplog.text
    )
    assert not tokens.asked


def test_a_token_server_that_refuses_a_model(
    server: Server, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the token server refuses the client, a request fails with its reason, and no prompt is sent."""
    monkeypatch.setenv("OPENAI_CLIENT_SECRET", "wrong-secret-1234")
    result = make("chat", server).make_request(REQUEST)
    assert failure_of(result) is Failure.BAD_KEY
    assert "invalid_client: wrong secret" in str(result.error)
    assert "wrong-secret-1234" not in str(result.error)
    assert not server.calls


KINDS_OF_FAULTS = {
    Fault.SERVER_ERROR: Failure.TEMPORARY,
    Fault.OVERLOADED: Failure.TEMPORARY,
    Fault.BUSY: Failure.TEMPORARY,
    Fault.DROPPED: Failure.TEMPORARY,
    Fault.CUT: Failure.TEMPORARY,
    Fault.NO_QUOTA: Failure.QUOTA,
    Fault.UNAUTHORIZED: Failure.BAD_KEY,
    Fault.FLAGGED: Failure.REFUSED,
    Fault.REFUSED: Failure.REFUSED,
    Fault.FILTERED: Failure.REFUSED,
    Fault.TOO_LONG: Failure.TOO_LONG,
    Fault.MALFORMED: Failure.MALFORMED,
    Fault.ENDED: Failure.MALFORMED,
    Fault.PAGE: Failure.MALFORMED,
    Fault.STRANGE: Failure.TEMPORARY,
}


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_failures(kind: str, server: Server, tmp_path: Path) -> None:
    """Every failure is a result of its kind without the key. The request is sent once, and no reply is cached."""
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    client = make(kind, server, cache, api_key="sk-a-secret-key-0123456789")
    for fault, failure in KINDS_OF_FAULTS.items():
        server.plan = faults.always(fault)
        result = client.make_request(REQUEST)
        assert failure_of(result) is failure, (fault, result.error)
        assert result.error is not None
        assert "0123456789" not in result.error
    assert len(server.calls) == len(KINDS_OF_FAULTS)
    server.plan = faults.none
    assert text(client.make_request(REQUEST)) == ANSWER


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_an_error_is_one_line(
    kind: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a gateway has many lines, but the failure is one line of the log."""
    server.plan = faults.always(Fault.SERVER_ERROR)
    monkeypatch.setattr(
        json, "dumps", lambda content: "<html>\n<h1>Bad gateway</h1>\r\n</html>"
    )
    error = make(kind, server).make_request(REQUEST).error
    assert error
    assert "InternalServerError: " in error
    assert error.endswith("<html> <h1>Bad gateway</h1> </html>")


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_streams_that_fail(kind: str, server: Server) -> None:
    """A stream that is cut or ends early is not an answer."""
    client = make(kind, server, stream=True)
    for fault, failure in {
        Fault.CUT: Failure.TEMPORARY,
        Fault.ENDED: Failure.TEMPORARY,
        Fault.MALFORMED: Failure.MALFORMED,
        Fault.REFUSED: Failure.REFUSED,
    }.items():
        server.plan = faults.always(fault)
        result = client.make_request(REQUEST)
        assert failure_of(result) is failure, (fault, result.error)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_server_declines(kind: str, server: Server) -> None:
    """A retired model and a prompt that is too long are recognized by the words of the providers."""
    client = make(kind, server)
    server.models = {}
    assert failure_of(client.make_request(REQUEST)) is Failure.UNKNOWN_MODEL
    server.models = {"m": Model(context=60)}
    assert client.make_request(REQUEST).success
    assert (
        failure_of(client.make_request(replace(REQUEST, prompt="x" * 100)))
        is Failure.TOO_LONG
    )
    server.models = {"m": Model(context=10)}
    assert (
        failure_of(client.make_request(replace(REQUEST, prompt="x" * 100)))
        is Failure.TOO_LONG
    )


def test_requests_that_cannot_be_sent(server: Server) -> None:
    """A request that asks for anything but one answer in text is refused."""
    result = make("chat", server).make_request(replace(REQUEST, num_completions=2))
    assert failure_of(result) is Failure.BAD_REQUEST
    assert "num_completions" in str(result.error)
    assert not server.calls


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache(kind: str, server: Server, tmp_path: Path) -> None:
    """The cache finds a reply by a digest of the prompt. A request with another prompt or another `random` is sent."""
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    client = make(kind, server, cache)
    first = client.make_request(REQUEST)
    again = client.make_request(REQUEST)
    assert (first.cached, again.cached) == (False, True)
    assert again.completions == first.completions
    assert again.request_time == first.request_time
    client.make_request(replace(REQUEST, prompt=f"{REQUEST.prompt}?"))
    client.make_request(replace(REQUEST, random="1"))
    assert len(server.calls) == 3
    assert "Ist das gut" not in str(client.cache_key(REQUEST))


def test_conversations_have_digests_of_their_own(server: Server) -> None:
    """Messages with the same texts in another order are another prompt."""
    turns = [
        [("user", "a"), ("user", "b")],
        [("user", "ab")],
        [("user", "b"), ("user", "a")],
        [("system", "a")],
    ]
    requests = [
        replace(
            CHAT, messages=[{"role": role, "content": words} for role, words in turn]
        )
        for turn in turns
    ]
    keys = [make("chat", server).cache_key(request)["sha256"] for request in requests]
    assert len(set(keys)) == len(keys)


THINKING = "Let me see whether it is good. " * 4


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_reasoning(kind: str, stream: bool, server: Server) -> None:
    """Reasoning is not a part of the answer. Its tokens are counted and are added to the limit of the answer."""
    server.models = {"m": Model(reasoning=THINKING, refuses=("thinking.type.enabled",))}
    result = make(kind, server, stream=stream, thinking_tokens=1024).make_request(
        REQUEST
    )
    assert text(result) == ANSWER
    assert result.completions[0].thinking.text == THINKING
    assert usage_of(result) == Usage(
        input_tokens=4, output_tokens=31 + 7, reasoning_tokens=31
    )
    assert not answer_of(result).is_thinking_unfinished
    assert server.calls[-1].body["max_tokens"] == 1024 + REQUEST.max_tokens


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_reasoning_that_never_ends(
    kind: str, stream: bool, hides: bool, server: Server
) -> None:
    """If the model only reasons until its limit, the result is an empty answer and not a failure."""
    server.models = {"m": Model(reasoning=THINKING, hides=hides)}
    extra = {"thinking": {"type": "adaptive"}} if kind == "anthropic" else {}
    result = make(kind, server, stream=stream, extra_body=extra).make_request(
        replace(REQUEST, max_tokens=20)
    )
    assert text(result) == ""
    assert failure_of(result) is None
    assert answer_of(result).is_any_cut
    assert answer_of(result).is_thinking_unfinished
    assert usage_of(result).reasoning_tokens == 20


def test_answers_that_are_cut(server: Server) -> None:
    """An answer that is not empty counts as an answer if it was cut at its limit."""
    for kind in KINDS:
        result = make(kind, server).make_request(replace(REQUEST, max_tokens=2))
        assert text(result) == ANSWER[:8]
        assert answer_of(result).is_any_cut
        assert not answer_of(result).is_thinking_unfinished


def test_reasoning_in_the_text() -> None:
    """If a server does not separate the reasoning from the answer, tags in the text say whether the reasoning ended."""

    def result(words: str) -> RequestResult:
        choice = {"message": {"content": words}, "finish_reason": "length"}
        return OpenAIClient(None, base_url="http://localhost").result(
            REQUEST, {"choices": [choice]}
        )

    assert answer_of(result("<think>Hm.")).is_thinking_unfinished
    assert not answer_of(result("<think>Hm.</think>Yes")).is_thinking_unfinished
    assert usage_of(result("Yes")) is None


def test_long_answers_are_streamed(server: Server) -> None:
    """Anthropic refuses long answers that are not streamed, so ours are. Other servers get a stream if they ask for it."""
    make("anthropic", server).make_request(replace(REQUEST, max_tokens=32_000))
    assert server.calls[-1].body["stream"] is True
    server.models = {"m": Model(streams_only=True)}
    client = make("chat", server)
    assert usage_of(client.make_request(REQUEST)) == Usage(4, output_tokens=7)
    assert [call.body.get("stream") for call in server.calls[1:]] == [None, True]
    assert "stream" not in client.body(REQUEST)


def test_prompt_caching(server: Server, tmp_path: Path) -> None:
    """Tokens that the provider read from its cache or wrote to it are counted as tokens of the prompt."""
    book = "A long book. " * 400
    for question in ("a", "b"):
        result = make("chat", server).make_request(
            replace(REQUEST, prompt=book + question)
        )
    assert usage_of(result) == Usage(1301, cached_tokens=1280, output_tokens=50)
    client = make(
        "anthropic", server, SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    )
    counts = []
    for question in ("a", "b"):
        result = client.make_request(
            with_beginning(replace(REQUEST, prompt=book + question), len(book))
        )
        counts.append(usage_of(result))
    assert counts == [Usage(1301, 0, 1299, 50), Usage(1301, 1299, 0, 50)]
    assert server.calls[-1].prompt.replace("\n", "") == book + "b"
    assert client.make_request(replace(REQUEST, prompt=book + "b")).cached


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
            Usage(9, output_tokens=3),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 3}, Usage(9, output_tokens=3)),
        (
            {  # xAI and Google count reasoning only in the total
                **{"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 22},
                **{
                    "prompt_tokens_details": None,
                    "completion_tokens_details": {"reasoning_tokens": 10},
                },
            },
            Usage(9, output_tokens=13, reasoning_tokens=10),
        ),
        ({}, None),
        (None, None),
    ],
)
def test_usage_of_other_servers(usage: Any, expected: Usage | None) -> None:
    """Servers of others leave out parts of the usage."""
    reply = {
        "choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}],
        "usage": usage,
    }
    result = OpenAIClient(None, base_url="http://localhost").result(REQUEST, reply)
    assert usage_of(result) == expected
    stored = parse_result(json.loads(json.dumps(asdict(result))))
    assert usage_of(stored) == expected


def test_prompts_that_are_not_unicode(server: Server) -> None:
    """UTF-8 cannot encode a lone surrogate, so it is sent with the escape of JSON."""
    request = Request(model="an/m", prompt="half: \ud83d", max_tokens=50)
    assert make("chat", server).make_request(request).success
    assert server.calls[0].prompt == request.prompt


@pytest.mark.skipif(
    not MEMORY.exists(), reason="reads the memory of the process as Linux has it"
)
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_memory(kind: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a long prompt is sent, memory holds one further copy of it, which is the body."""
    client = make(kind, server)
    resident = []
    reply = _reply(server, client.route(REQUEST), client.body(REQUEST))

    def answer(request: Any) -> Any:
        resident.append(int(MEMORY.read_text().split()[1]) * 4096)
        return HTTP.Response(200, json=reply)

    monkeypatch.setattr(
        Transport, "handle_request", lambda transport, request: answer(request)
    )
    assert client.make_request(REQUEST).success
    request = replace(REQUEST, prompt="A long book. " * 1_500_000)
    assert client.make_request(request).success
    before, at_sending = resident
    assert at_sending - before < 2.5 * len(request.prompt)  # the prompt and its body
