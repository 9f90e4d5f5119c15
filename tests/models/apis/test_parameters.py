"""Parameters that models refuse, in the words of their providers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import openai
import pytest
from helm.common.request import Request
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.failures import Failure
from helm_longctx.models.apis.parameters import (
    ADAPTIVE,
    DROPPABLE,
    Change,
    Parameters,
    find_change,
)
from helm_longctx.models.results import facts_of, failure_of
from helm_longctx.models.sampling import SampledRequest
from tests.models.apis.making import REQUEST, make
from tests.support.http import HTTP
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

OPENAI = Model(
    refuses=("max_tokens", "top_p", "stop", "seed", "presence_penalty"),
    only_default=("temperature",),
)  # a reasoning model
ANTHROPIC = Model(refuses=("temperature", "thinking.type.enabled"))
FULL: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "stop_sequences": ["\n"],
    "presence_penalty": 1,
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(lambda prompt: "Yes\nIt is.") as running:
        yield running


def test_openai_reasoning_models(server: Server) -> None:
    """Parameters that the model refuses are dropped one by one and only once. The stop sequence still ends the answer."""
    server.models = {"m": OPENAI}
    client = make("chat", server)
    request = SampledRequest(model="an/m", prompt="?", max_tokens=50, seed=1, **FULL)
    first = client.make_request(request)
    (completion,) = first.completions
    assert completion.text == "Yes"
    assert facts_of(first).sent == {"model": "m", "max_completion_tokens": 50}
    assert [call.fault for call in server.calls] == [Fault.DECLINED] * 6 + [None]
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(
            client.make_request,
            [replace(request, prompt=str(number)) for number in range(8)],
        )
    assert all(result.success for result in results)
    assert len(server.failed()) == 1
    assert server.failed()[Fault.DECLINED] == 6
    assert client.body(request).keys() == {"model", "messages", "max_completion_tokens"}


def test_anthropic(server: Server) -> None:
    """Anthropic's models refuse temperatures, budgets for thinking, and stop sequences of white space."""
    server.models = {"m": ANTHROPIC}
    client = make("anthropic", server, thinking_tokens=2000)
    result = client.make_request(
        Request(model="an/m", prompt="?", max_tokens=50, **FULL)
    )
    (completion,) = result.completions
    assert completion.text == "Yes"
    assert facts_of(result).sent == {
        "model": "m",
        "max_tokens": 2050,
        "top_p": 0.9,
        "thinking": ADAPTIVE,
    }
    server.forget()
    assert client.make_request(replace(REQUEST, prompt="!")).success
    assert len(server.calls) == 1


def test_threads_learn_together(server: Server) -> None:
    """Each thread with a request in flight gets the error, and then its answer."""
    server.models = {"m": replace(OPENAI, refuses=("max_tokens",))}
    server.delay = 0.1
    client = make("chat", server)
    with ThreadPoolExecutor(8) as pool:
        results = list(
            pool.map(
                client.make_request,
                [replace(REQUEST, prompt=str(number)) for number in range(8)],
            )
        )
    assert all(result.success for result in results)
    # At most one round of each refused parameter: nobody learns alone what another thread has learned.
    assert server.failed()[Fault.DECLINED] <= 2 * 8


def test_what_is_asked_for_is_not_dropped(server: Server) -> None:
    """Arguments of the deployment are never dropped, because a model without its reasoning is another model."""
    server.models = {"m": Model(refuses=("reasoning_effort",))}
    result = make("chat", server, reasoning_effort="low").make_request(REQUEST)
    assert failure_of(result) is Failure.BAD_REQUEST
    assert "reasoning_effort" in str(result.error)
    assert len(server.calls) == 1


def error(
    text: str, status: int = 400, param: str | None = None
) -> openai.APIStatusError:
    response = HTTP.Response(status, request=HTTP.Request("POST", "http://localhost"))
    return openai.APIStatusError(
        f"Error code: {status} - {text}", response=response, body={"param": param}
    )


SENT = {
    "max_tokens": 9,
    "temperature": 0,
    "top_p": 1,
    "stop": ["\n"],
    "seed": 1,
    "presence_penalty": 1,
}


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        (
            "{'error': 'Argument not supported on this model: presencePenalty'}",
            400,
            "presence_penalty",
        ),
        ("Model grok-4.5 does not support parameter stop.", 400, "stop"),
        (
            "{'error': {'message': 'temperature is deprecated for this model.'}}",
            400,
            "temperature",
        ),
        (
            "{'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'seed'], 'msg': 'Extra inputs are not'}]}",
            422,
            "seed",
        ),
        ("Unrecognized request argument supplied: seed", 400, "seed"),
        (
            'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
            400,
            "seed",
        ),
        (
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            400,
            "top_p",
        ),
        (
            "prompt is too long: 208310 tokens > 200000 maximum; `temperature` is not supported",
            400,
            None,
        ),
        (
            "input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000",
            400,
            None,
        ),
        ("Unsupported parameter: 'temperature' is not supported", 500, None),
        ("The stop is not where you want to be. Invalid image.", 400, None),
        (
            "Unsupported parameter: 'logit_bias' is not supported with this model.",
            400,
            None,
        ),
        ("Invalid value for 'temperature': must be a number", 401, None),
    ],
)
def test_words_of_providers(text: str, status: int, expected: str | None) -> None:
    """An error names a parameter that can be dropped, or none."""
    change = find_change(error(text, status), SENT)
    assert (change and change.parameter) == expected


ENABLED = {"type": "enabled", "budget_tokens": 2000}


@pytest.mark.parametrize(
    ("text", "body", "expected", "told"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            {"max_tokens": 9},
            {"max_completion_tokens": 9},
            "'max_tokens' is sent as 'max_completion_tokens'",
        ),
        (
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".',
            {"thinking": ENABLED},
            {"thinking": {"type": "adaptive", "display": "summarized"}},
            "'thinking' is sent as {'type': 'adaptive', 'display': 'summarized'}",
        ),
        (
            "This model only supports streaming.",
            {"stream": False},
            {"stream": True},
            "'stream' is sent as True",
        ),
        (
            "parameter stream must be set to true",
            {},
            {"stream": True},
            "'stream' is sent as True",
        ),
        ("Unsupported parameter: 'top_p'.", {"top_p": 0.5}, {}, "'top_p' is not sent"),
    ],
)
def test_values_that_are_sent_instead(
    text: str, body: dict[str, Any], expected: dict[str, Any], told: str
) -> None:
    """The body has the new name or value, the log says so, and the same error does not change the body again."""
    change = find_change(error(text), {"model": "m", **body})
    assert change
    assert change.apply({"model": "m", **body}) == {"model": "m", **expected}
    assert str(change) == told
    assert find_change(error(text), {"model": "m", **expected}) is None


def test_the_prompt_is_not_searched() -> None:
    """Words of a prompt that a server repeats in its error are not names of parameters."""
    text = f"{'x' * 1000} Unsupported parameter: 'temperature' is not supported with this model."
    assert find_change(error(text), SENT) is None


CHANGES = st.builds(Change, st.sampled_from(DROPPABLE)) | st.just(
    Change("max_tokens", new_name="max_completion_tokens")
)


@given(
    st.lists(CHANGES, max_size=5),
    st.dictionaries(
        st.sampled_from([*DROPPABLE, "max_tokens", "model"]), st.integers()
    ),
)
def test_changes(changes: list[Change], body: dict[str, Any]) -> None:
    """A change drops or renames only the parameters that it names. Applied twice, it has the same result."""
    parameters = Parameters()
    parameters.changes = tuple(changes)
    once = parameters.apply(body)
    assert parameters.apply(once) == once
    assert not {change.parameter for change in changes} & once.keys()
    named = {change.parameter for change in changes}
    kept = {name: value for name, value in body.items() if name not in named}
    assert kept.items() <= once.items()
    assert once.keys() <= {*kept, "max_completion_tokens"}
