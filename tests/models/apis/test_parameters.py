"""Parameters that models refuse, in the words of their providers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from helm.common.request import Request
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apis.parameters import ADAPTIVE, DROPPABLE, Change, Parameters, find_change
from helm_longctx.failures import Failure, failure_of
from helm_longctx.judging.judge import SeededRequest
from tests.apis.making import REQUEST, make
from tests.servers.faults import Fault
from tests.servers.llm import Server, serve
from tests.servers.models import Model

OPENAI = Model(
    refuses=("max_tokens", "top_p", "stop", "seed", "presence_penalty"), only_default=("temperature",)
)  # a reasoning model
ANTHROPIC = Model(refuses=("temperature", "thinking.type.enabled"))
FULL: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "stop_sequences": ["\n"], "presence_penalty": 1}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda prompt: "Yes\nIt is.") as running:
        yield running


def test_openai_reasoning_models(server: Server) -> None:
    """What the model refuses goes one by one, once; the stop sequence still ends the answer."""
    server.models = {"m": OPENAI}
    client = make("chat", server)
    request = SeededRequest(model="an/m", prompt="?", max_tokens=50, seed=1, **FULL)
    first = client.make_request(request)
    (completion,) = first.completions
    assert completion.text == "Yes"
    assert completion.finish_reason["sent"] == {"model": "m", "max_completion_tokens": 50}
    assert [call.fault for call in server.calls] == [Fault.DECLINED] * 6 + [None]
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(client.make_request, [replace(request, prompt=str(number)) for number in range(8)])
    assert all(result.success for result in results)
    assert len(server.failed()) == 1
    assert server.failed()[Fault.DECLINED] == 6
    assert client.body(request).keys() == {"model", "messages", "max_completion_tokens"}


def test_anthropic(server: Server) -> None:
    """A temperature, thinking with a budget, and a stop sequence of white space alone."""
    server.models = {"m": ANTHROPIC}
    client = make("anthropic", server, thinking_tokens=2000)
    result = client.make_request(Request(model="an/m", prompt="?", max_tokens=50, **FULL))
    (completion,) = result.completions
    assert completion.text == "Yes"
    assert completion.finish_reason["sent"] == {"model": "m", "max_tokens": 2050, "top_p": 0.9, "thinking": ADAPTIVE}
    server.forget()
    assert client.make_request(replace(REQUEST, prompt="!")).success
    assert len(server.calls) == 1


def test_threads_learn_together(server: Server) -> None:
    """Threads whose requests are in flight at the same time each get the error, and all get their answer."""
    server.models, server.delay = {"m": replace(OPENAI, refuses=("max_tokens",))}, 0.1
    client = make("chat", server)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(client.make_request, [replace(REQUEST, prompt=str(number)) for number in range(8)]))
    assert all(result.success for result in results)
    # At most one round of each refused parameter: nobody learns alone what another thread has learned.
    assert server.failed()[Fault.DECLINED] <= 2 * 8


def test_what_is_asked_for_is_not_dropped(server: Server) -> None:
    """A deployment's own arguments are sent or fail: without its reasoning, the model would be another."""
    server.models = {"m": Model(refuses=("reasoning_effort",))}
    result = make("chat", server, reasoning_effort="low").make_request(REQUEST)
    assert failure_of(result) is Failure.BAD_REQUEST
    assert "reasoning_effort" in str(result.error)
    assert len(server.calls) == 1


def error(text: str, status: int = 400, param: str | None = None) -> openai.APIStatusError:
    response = httpx.Response(status, request=httpx.Request("POST", "http://localhost"))
    return openai.APIStatusError(f"Error code: {status} - {text}", response=response, body={"param": param})


SENT = {"max_tokens": 9, "temperature": 0, "top_p": 1, "stop": ["\n"], "seed": 1, "presence_penalty": 1}


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("{'error': 'Argument not supported on this model: presencePenalty'}", 400, "presence_penalty"),
        ("Model grok-4.5 does not support parameter stop.", 400, "stop"),
        ("{'error': {'message': 'temperature is deprecated for this model.'}}", 400, "temperature"),
        (
            "{'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'seed'], 'msg': 'Extra inputs are not'}]}",
            422,
            "seed",
        ),
        ("Unrecognized request argument supplied: seed", 400, "seed"),
        ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', 400, "seed"),
        ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", 400, "top_p"),
        ("prompt is too long: 208310 tokens > 200000 maximum; `temperature` is not supported", 400, None),
        ("input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000", 400, None),
        ("Unsupported parameter: 'temperature' is not supported", 500, None),
        ("The stop is not where you want to be. Invalid image.", 400, None),
        ("Unsupported parameter: 'logit_bias' is not supported with this model.", 400, None),
        ("Invalid value for 'temperature': must be a number", 401, None),
    ],
)
def test_words_of_providers(text: str, status: int, expected: str | None) -> None:
    """Which parameter an error is about, if it is about one that can go."""
    change = find_change(error(text, status), SENT)
    assert (change and change.parameter) == expected


def test_the_prompt_is_not_searched() -> None:
    """A server that repeats the prompt in its error names no parameters with it."""
    text = f"{'x' * 1000} Unsupported parameter: 'temperature' is not supported with this model."
    assert find_change(error(text), SENT) is None


CHANGES = st.builds(Change, st.sampled_from(DROPPABLE)) | st.just(
    Change("max_tokens", new_name="max_completion_tokens")
)


@given(
    st.lists(CHANGES, max_size=5), st.dictionaries(st.sampled_from([*DROPPABLE, "max_tokens", "model"]), st.integers())
)
def test_changes(changes: list[Change], body: dict[str, Any]) -> None:
    """They leave out what they name and nothing else, and a second time changes nothing."""
    parameters = Parameters()
    parameters._changes = tuple(changes)
    once = parameters.apply(body)
    assert parameters.apply(once) == once
    assert not {change.parameter for change in changes} & once.keys()
    named = {change.parameter for change in changes}
    kept = {name: value for name, value in body.items() if name not in named}
    assert kept.items() <= once.items()
    assert once.keys() <= {*kept, "max_completion_tokens"}
