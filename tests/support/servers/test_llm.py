"""Tests of the local server with the official clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from tests.support.http import HTTP
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, asked_again, serve
from tests.support.servers.models import Model

PATIENCE = 60.0
"""Seconds that clients wait for a byte."""

QUESTION = [{"role": "user", "content": "Ist das gut? 好"}]


def answer(prompt: str) -> str:
    return f"{prompt} Yes, it is."


TEXT = answer("Ist das gut? 好")


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(answer) as running:
        yield running


def chat(server: Server, retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=server.openai,
        api_key="sk-openai",
        max_retries=retries,
        timeout=PATIENCE,
    )


def messages(server: Server, retries: int = 0) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=server.address,
        api_key="sk-anthropic",
        max_retries=retries,
        timeout=PATIENCE,
    )


def ask_openai(server: Server, retries: int = 0) -> Any:
    return chat(server, retries).chat.completions.create(model="m", messages=QUESTION)


def ask_anthropic(server: Server, retries: int = 0) -> Any:
    return messages(server, retries).messages.create(
        model="m", messages=QUESTION, max_tokens=9
    )


def stream_openai(server: Server) -> tuple[str, str | None]:
    text = ""
    finish = None
    for chunk in chat(server).chat.completions.create(
        model="m", messages=QUESTION, stream=True
    ):
        text += chunk.choices[0].delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    return text, finish


def stream_anthropic(server: Server) -> tuple[str, str | None]:
    with messages(server).messages.stream(
        model="m", messages=QUESTION, max_tokens=9
    ) as stream:
        message = stream.get_final_message()
    return "".join(block.text for block in message.content), message.stop_reason


def test_answers(server: Server) -> None:
    """All protocols give the answer, whole and streamed, and each call is remembered with its key."""
    assert ask_openai(server).choices[0].message.content == TEXT
    assert stream_openai(server) == (TEXT, "stop")
    assert ask_anthropic(server).content[0].text == TEXT
    assert stream_anthropic(server) == (TEXT, "end_turn")
    completion = chat(server).completions.create(
        model="m", prompt=QUESTION[0]["content"]
    )
    assert completion.choices[0].text == TEXT
    # Newer versions of anthropic also send the key as a bearer token.
    keys = [call.key.removeprefix("Bearer ") for call in server.calls]
    assert keys == [
        "sk-openai",
        "sk-openai",
        "sk-anthropic",
        "sk-anthropic",
        "sk-openai",
    ]
    assert {call.prompt for call in server.calls} == {QUESTION[0]["content"]}
    assert [call.at for call in server.calls] == sorted(
        call.at for call in server.calls
    )
    assert len(asked_again(server.calls)) == 4


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault.RATE_LIMIT, 429),
        (Fault.SERVER_ERROR, 500),
        (Fault.OVERLOADED, 503),
        (Fault.UNAUTHORIZED, 401),
    ],
)
def test_statuses(fault: Fault, status: int, server: Server) -> None:
    """Each status is an error in the words of the protocol, and a rate limit tells clients when to try again."""
    server.plan = faults.always(fault)
    with pytest.raises(openai.APIStatusError) as of_openai:
        ask_openai(server)
    with pytest.raises(anthropic.APIStatusError) as of_anthropic:
        ask_anthropic(server)
    assert of_openai.value.status_code == status
    assert of_anthropic.value.status_code == (
        529 if fault is Fault.OVERLOADED else status
    )
    assert of_openai.value.response.headers.get("Retry-After") == (
        "0.05" if fault is Fault.RATE_LIMIT else None
    )
    assert (
        ("sk-openai" in str(of_openai.value))
        == ("sk-anthropic" in str(of_anthropic.value))
        == (status == 401)
    )
    assert server.failed() == {fault: 2}
    assert asked_again(server.calls) == []


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.DROPPED, Fault.CUT])
def test_lost_connections(
    fault: Fault, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing answer and half an answer are connection errors of the official clients."""
    if fault is Fault.TIMEOUT:
        monkeypatch.setitem(globals(), "PATIENCE", 0.5)
    server.plan = faults.always(fault)
    for ask, error in (
        (ask_openai, openai.APIConnectionError),
        (ask_anthropic, anthropic.APIConnectionError),
    ):
        with pytest.raises(error) as raised:
            ask(server)
        assert isinstance(
            raised.value, openai.APITimeoutError | anthropic.APITimeoutError
        ) == (fault is Fault.TIMEOUT)


@pytest.mark.parametrize("fault", [Fault.MALFORMED, Fault.ENDED])
def test_bodies_that_are_no_json(fault: Fault, server: Server) -> None:
    """The official clients raise the parser's error, which is no class of theirs, if a body is no JSON."""
    server.plan = faults.always(fault)
    for ask in (ask_openai, ask_anthropic):
        with pytest.raises(json.JSONDecodeError):
            ask(server)


def test_an_error_with_status_200(server: Server) -> None:
    """The official clients see an answer without a text if an error has status 200."""
    server.plan = faults.always(Fault.STRANGE)
    assert ask_openai(server).choices is None
    assert ask_anthropic(server).content is None


def test_a_page_instead_of_an_answer(server: Server) -> None:
    """The official clients take a page of HTML for the answer, as text."""
    server.plan = faults.always(Fault.PAGE)
    assert "One moment" in ask_openai(server)
    assert "One moment" in ask_anthropic(server)


@pytest.mark.parametrize(
    ("fault", "of_openai", "of_anthropic"),
    [
        (Fault.REFUSED, (None, "stop"), ("", "refusal")),
        (Fault.FILTERED, ("", "content_filter"), ("", "refusal")),
        (Fault.EMPTY, ("", "stop"), ("", "end_turn")),
        (
            Fault.SHORT,
            (TEXT[: len(TEXT) // 2], "length"),
            (TEXT[: len(TEXT) // 2], "max_tokens"),
        ),
        (
            Fault.UNREADABLE,
            ("It reads well {on the whole.", "stop"),
            ("It reads well {on the whole.", "end_turn"),
        ),
    ],
)
def test_odd_answers(
    fault: Fault, of_openai: Any, of_anthropic: Any, server: Server
) -> None:
    """Refusals and cut or empty answers look whole to a client, and only their finish reason can tell."""
    server.plan = faults.always(fault)
    choice = ask_openai(server).choices[0]
    message = ask_anthropic(server)
    assert (choice.message.content, choice.finish_reason) == of_openai
    assert (
        "".join(block.text for block in message.content),
        message.stop_reason,
    ) == of_anthropic
    assert (choice.message.refusal is not None) == (fault is Fault.REFUSED)
    assert (message.content == []) == (fault is Fault.REFUSED)
    assert stream_openai(server) == (of_openai[0] or "", of_openai[1])
    assert stream_anthropic(server) == of_anthropic


def test_cut_streams(server: Server) -> None:
    """A stream that is cut is an error, and a stream that ends early can be told only by its missing finish reason."""
    server.plan = faults.always(Fault.CUT)
    for stream in (stream_openai, stream_anthropic):
        with pytest.raises(
            (HTTP.RemoteProtocolError, openai.APIError, anthropic.APIError)
        ):
            stream(server)
    server.plan = faults.always(Fault.ENDED)
    for stream in (stream_openai, stream_anthropic):
        text, finish = stream(server)
        assert TEXT.startswith(text)
        assert len(text) < len(TEXT)
        assert finish is None
    server.plan = faults.always(Fault.MALFORMED)
    for stream in (stream_openai, stream_anthropic):
        with pytest.raises(ValueError, match=r"Expecting|EOF"):
            stream(server)


def test_the_clients_own_retries(server: Server) -> None:
    """The official clients ask again after a 429 and wait as long as it says, and do not ask again after an answer."""
    for ask in (ask_openai, ask_anthropic):
        server.plan = faults.first(Fault.RATE_LIMIT, Fault.RATE_LIMIT)
        server.forget()
        ask(server, retries=2)
        assert [call.fault for call in server.calls] == [
            Fault.RATE_LIMIT,
            Fault.RATE_LIMIT,
            None,
        ]
        waits = [
            b.at - a.at for a, b in zip(server.calls, server.calls[1:], strict=False)
        ]
        assert min(waits) >= 0.05


def test_models() -> None:
    """Models are listed and found as each official client expects, and others are not found."""
    with serve(answer, models={"a": Model(context=9), "b": Model()}) as server:
        for client, module in ((chat(server), openai), (messages(server), anthropic)):
            assert [model.id for model in client.models.list()] == ["a", "b"]
            assert client.models.retrieve("b").id == "b"
            with pytest.raises(module.NotFoundError):
                client.models.retrieve("c")
        assert chat(server).models.retrieve("a").max_model_len == 9
        assert messages(server).models.retrieve("a").max_input_tokens == 9


def test_a_share_of_faults(server: Server) -> None:
    """A fifth of all calls fails with every kind of fault, independent of the order of calls, and a seed gives other faults."""
    kinds = list(Fault)
    plan = faults.share(0.2, kinds, seed=1)
    prompts = [
        (f"question {number}", before) for number in range(1000) for before in (0, 1)
    ]
    plans = [plan(*prompt) for prompt in prompts]
    assert 0.17 < sum(fault is not None for fault in plans) / len(plans) < 0.23
    assert set(plans) == {*kinds, None}
    assert [plan(*prompt) for prompt in reversed(prompts)] == plans[::-1]
    assert [faults.share(0.2, kinds, seed=2)(*prompt) for prompt in prompts] != plans
    assert not any(faults.share(0, kinds)(*prompt) for prompt in prompts)


def test_many_at_once(server: Server) -> None:
    """Threads that ask at the same time get their own answers, and every call is remembered."""
    server.plan = faults.first(None, Fault.SERVER_ERROR)
    client = chat(server)

    def ask(number: int) -> str:
        question = [{"role": "user", "content": f"question {number}"}]
        return (
            client.chat.completions.create(model="m", messages=question)
            .choices[0]
            .message.content
        )

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))) == [
            f"question {number} Yes, it is." for number in range(40)
        ]
    assert len({call.question for call in server.calls}) == 40
    with pytest.raises(openai.InternalServerError):
        ask(3)
    assert [call.fault for call in asked_again(server.calls)] == [Fault.SERVER_ERROR]
