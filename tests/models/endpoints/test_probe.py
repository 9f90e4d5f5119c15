"""Tests of what is found out about servers that answer as the known ones do."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from helm_longctx.errors import InputError
from helm_longctx.models.endpoints.probe import base_url, nearest, probe
from tests.models.endpoints.scripted import CHAT, MESSAGE, TEXT, Reply, Route, scripted
from tests.support.servers.closed import closed_address

ROUTES: dict[str, Route] = {"/v1/chat/completions": CHAT, "/v1/completions": TEXT}


def models(*rows: dict[str, Any]) -> Route:
    """Return the reply of a models route with these rows."""
    return 200, {"object": "list", "data": list(rows)}


VLLM = models(
    {"id": "llama", "max_model_len": 32768, "root": "meta-llama/Llama-3.1-8B"}
)


@pytest.mark.parametrize(
    ("listed", "context"),
    [
        (VLLM, 32768),
        (models({"id": "llama", "context_length": 1000}), 1000),  # OpenRouter
        ((200, [{"id": "llama", "context_length": 2000}]), 2000),  # Together
        (models({"id": "llama", "context_window": 3000}), 3000),  # Groq
        (
            models({"id": "llama", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}),
            4096,
        ),  # llama.cpp
        (models({"id": "llama", "max_input_tokens": 4000}), 4000),  # Anthropic
        (models({"id": "llama", "context_length": None, "meta": "none"}), None),
        (models({"id": "other", "context_length": 5}, {"id": "llama"}), None),
        ((500, "Internal Server Error"), None),  # transformers serve without a cache
        ((200, "<html>"), None),
        ((403, {"error": "restricted key"}), None),
    ],
)
def test_models_routes(listed: Route, context: int | None) -> None:
    """The context is read where the server gives it, and a server without a usable list of models is asked anyway."""
    with scripted({**ROUTES, "/v1/models": listed}) as server:
        endpoint = probe(server.address, name="my/llama")
    assert (endpoint.model, endpoint.context, endpoint.routes) == (
        "llama",
        context,
        ("chat", "completions"),
    )


def test_one_model_needs_no_name() -> None:
    """The only model of a server is used whatever name the user gives, and its hub name and its headers are kept."""
    with scripted({**ROUTES, "/v1/models": VLLM}) as server:
        endpoint = probe(
            f"{server.address}/v1/chat/completions",
            name="my/model",
            headers={"X-Team": "nlp"},
        )
    assert (endpoint.model, endpoint.source, endpoint.url) == (
        "llama",
        "meta-llama/Llama-3.1-8B",
        f"{server.address}/v1",
    )
    assert endpoint.client_spec() == {
        "class_name": "helm_longctx.models.apis.OpenAIClient",
        "args": {
            "base_url": endpoint.url,
            "model": "llama",
            "form": "both",
            "headers": {"X-Team": "nlp"},
        },
    }
    assert all(headers["X-Team"] == "nlp" for headers in server.headers)


@pytest.mark.parametrize(
    ("closed", "form"),
    [
        ("/v1/completions", "chat"),
        ("/v1/chat/completions", "completions"),
        (None, "both"),
    ],
)
def test_forms(closed: str | None, form: str) -> None:
    """Only the routes that the server answers are used, and `type` chooses among them."""
    routes = {path: route for path, route in ROUTES.items() if path != closed}
    with scripted(routes) as server:
        assert probe(server.address, model="m").client_spec()["args"]["form"] == form
        if closed:
            other = "completions" if form == "chat" else "chat"
            for kind in (other, "both"):
                with pytest.raises(
                    InputError,
                    match=f"type='{kind}': the server does not answer {other} .*; give {form}$",
                ):
                    probe(server.address, model="m", kind=kind)
        else:
            assert probe(server.address, model="m", kind="completions").routes == (
                "completions",
            )


def test_a_base_model_without_a_chat_template() -> None:
    """A base model without a chat template, with which vLLM refuses to chat, is used for completions."""
    refusal = (
        400,
        {
            "error": {
                "message": "As of transformers v4.44, default chat template is no longer allowed"
            }
        },
    )
    with scripted({**ROUTES, "/v1/chat/completions": refusal}) as server:
        assert probe(server.address, model="m").routes == ("completions",)


def test_anthropic_protocol() -> None:
    """The address of an Anthropic server ends before `/v1`, and the server only chats."""
    with scripted({"/v1/messages": MESSAGE, "/v1/models": VLLM}) as server:
        endpoint = probe(f"{server.address}/v1/messages", api="anthropic")
        assert (endpoint.url, endpoint.routes, endpoint.context) == (
            server.address,
            ("chat",),
            32768,
        )
        assert (
            endpoint.client_spec()["class_name"]
            == "helm_longctx.models.apis.AnthropicClient"
        )
        with pytest.raises(InputError, match="type='both' is invalid; give chat"):
            probe(server.address, api="anthropic", kind="both")


def pinned(body: dict[str, Any]) -> tuple[int, Any]:
    """Return what `transformers serve MODEL` answers for another name."""
    if body["model"] == "/models/tiny":
        return CHAT if "messages" in body else TEXT
    return 400, {
        "detail": f"Server is pinned to '/models/tiny'; requested '{body['model']}'."
    }


def missing(body: dict[str, Any]) -> tuple[int, Any]:
    """Return what vLLM answers for a model that it lacks."""
    return 404, {
        "error": {
            "message": f"The model `{body['model']}` does not exist.",
            "code": 404,
        }
    }


@pytest.mark.parametrize(
    ("routes", "model", "told"),
    [
        ({"/v1/chat/completions": pinned, "/v1/completions": pinned}, "tiny", "does not have .* pinned to '/models/tiny'"),
        (dict.fromkeys(ROUTES, missing) | {"/v1/models": VLLM}, "lama", "^model='lama': .* does not have this model .*; give one of its models, such as llama$"),
        ({"/v1/models": models({"id": "a"}, {"id": "lamb"})}, None, r"^model is missing, and http.* has 2 models; name one of them, such as lamb, with --model \(helm-longctx run: --model-name"),
        ({}, "m", "does not answer a tiny request to 'm': unreachable"),
        ({path: (402, {"error": "payment required"}) for path in ROUTES}, "m", "quota"),
    ],
)  # fmt: skip
def test_models_that_are_not_there(
    routes: dict[str, Route], model: str | None, told: str
) -> None:
    """One line says what the server said, and which names are nearest to the name of the missing model."""
    with scripted(routes) as server, pytest.raises(InputError, match=told) as raised:
        probe(server.address, name="my/lama", model=model)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("model", "warnings"), [("lama", 1), ("llama", 0)])
def test_a_model_that_is_not_listed_but_answers(
    model: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that answers without being listed is used, with a warning that gives the nearest name."""
    with scripted({**ROUTES, "/v1/models": VLLM}) as server:
        assert probe(server.address, model=model).model == model
    texts = [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]
    assert [
        text.endswith("model='lama' but does not list it; listed: llama")
        for text in texts
    ] == [True] * warnings


SILENT: Route = (
    200,
    {"choices": [{"message": {"content": ""}, "text": "", "finish_reason": "stop"}]},
)
REASONS: Route = (
    200,
    {
        "choices": [
            {"message": {"content": None, "reasoning": "Hm."}, "finish_reason": "stop"}
        ]
    },
)


NO_WORD = "answers a request for one word to 'm' with an empty text"
BASE: Route = (
    400,
    {"error": {"message": "default chat template is no longer allowed"}},
)


def starts_with_lines(body: dict[str, Any]) -> tuple[int, Any]:
    """Return what is left of an answer that starts with empty lines and that a stop sequence ends."""
    return SILENT if "stop" in body else CHAT  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("routes", "kind", "told"),
    [
        (
            dict.fromkeys(ROUTES, SILENT),
            None,
            r" \(chat and completions\); .* or use the model for completions alone",
        ),
        (
            dict.fromkeys(ROUTES, SILENT),
            "chat",
            r" \(chat\); check its weights and its chat template, or use",
        ),
        (
            {"/v1/chat/completions": SILENT},
            None,
            r" \(chat\); check its weights and its chat template$",
        ),
        ({**ROUTES, "/v1/chat/completions": SILENT}, None, r" \(chat\); check"),
    ],
)
def test_a_chat_without_a_word(
    routes: dict[str, Route], kind: str | None, told: str
) -> None:
    """A model that chats, and answers a request for a word with nothing, is refused."""
    with scripted(routes) as server, pytest.raises(InputError, match=NO_WORD + told):
        probe(server.address, model="m", kind=kind)


@pytest.mark.parametrize(
    ("routes", "kind", "warns"),
    [
        (dict.fromkeys(ROUTES, SILENT), "completions", True),
        ({**ROUTES, "/v1/completions": SILENT}, None, True),
        ({**ROUTES, "/v1/completions": SILENT}, "chat", False),
        ({"/v1/chat/completions": BASE, "/v1/completions": SILENT}, None, True),
        ({"/v1/chat/completions": REASONS}, None, False),
        ({"/v1/chat/completions": starts_with_lines}, None, False),
    ],
)
def test_completions_without_a_word(
    routes: dict[str, Route],
    kind: str | None,
    warns: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A model that continues texts can have nothing to add: an empty completion is a warning, and reasoning is none."""
    with scripted(routes) as server:
        probe(server.address, model="m", kind=kind)
    texts = [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]
    assert [
        f"{NO_WORD} (completions); if it does so in a run" in text for text in texts
    ] == [True] * warns


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key comes only from the named variable, and is never in an error."""
    monkeypatch.setenv("RIGHT", "sk-right-0123456789")
    monkeypatch.setenv("WRONG", "sk-wrong-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other-0123456789")
    with scripted(ROUTES, key="sk-right-0123456789") as server:
        assert "sk-" not in str(probe(server.address, model="m", api_key_env="RIGHT"))
        with pytest.raises(
            InputError,
            match=r"^api_key_env='WRONG': .* refuses the key in this variable$",
        ):
            probe(server.address, model="m", api_key_env="WRONG")
        with pytest.raises(
            InputError,
            match=r"^api_key_env is missing, and .* needs a key; give the name of the environment",
        ):
            probe(server.address, model="m")
        with pytest.raises(
            InputError, match="the environment variable ABSENT is not set"
        ):
            probe(server.address, model="m", api_key_env="ABSENT")
    assert not any("sk-other" in str(headers) for headers in server.headers)


def test_headers_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable in a header is replaced when the header is sent, and is kept as a variable in the entry."""
    monkeypatch.setenv("GATEWAY", "gw-0123456789")
    with scripted(ROUTES) as server:
        endpoint = probe(
            server.address, model="m", headers={"X-Gateway": "Token $GATEWAY"}
        )
        assert {headers.get("X-Gateway") for headers in server.headers} == {
            "Token gw-0123456789"
        }
        assert endpoint.client_spec()["args"]["headers"] == {
            "X-Gateway": "Token $GATEWAY"
        }
        with pytest.raises(
            InputError, match="the environment variable ABSENT is not set"
        ):
            probe(server.address, model="m", headers={"X-Gateway": "$ABSENT"})


def picky(body: dict[str, Any]) -> tuple[int, Any]:
    """Return what OpenAI's reasoning models answer to parameters that they refuse."""
    for name, advice in (
        ("max_tokens", " Use 'max_completion_tokens' instead."),
        ("temperature", ""),
    ):
        if name in body:
            message = f"Unsupported parameter: '{name}' is not supported with this model.{advice}"
            return 400, {
                "error": {
                    "message": message,
                    "param": name,
                    "code": "unsupported_parameter",
                }
            }
    return CHAT


@pytest.mark.parametrize(
    "words",
    [
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "parameter.enable_thinking only support stream call",
        "This model only support stream mode, please enable the stream parameter to access the model.",
    ],
)
def test_models_that_only_stream(words: str) -> None:
    """A model of Qwen's that only streams can be added, and its requests ask for streams."""

    def answer(body: dict[str, Any]) -> Reply:
        refusal = {"error": {"message": words, "code": "invalid_parameter_error"}}
        return CHAT if body.get("stream") else (400, refusal)

    with scripted(
        {"/v1/models": (200, {"data": [{"id": "m"}]}), "/v1/chat/completions": answer}
    ) as server:
        endpoint = probe(server.address, name="corp/m")
    assert endpoint.routes == ("chat",)
    assert "'stream' is sent as True" in endpoint.refused


def test_parameters_that_are_refused() -> None:
    """Refused parameters are left out or renamed as in a run, and are reported."""
    with scripted({"/v1/chat/completions": picky}) as server:
        endpoint = probe(server.address, model="m")
    assert endpoint.refused == (
        "'max_tokens' is sent as 'max_completion_tokens'",
        "'temperature' is not sent",
    )


@pytest.mark.parametrize(
    ("given", "api", "url"),
    [
        ("http://h:8000", "openai", "http://h:8000/v1"),
        ("http://h:8000/v1/", "openai", "http://h:8000/v1"),
        ("https://h/api/v1/models", "openai", "https://h/api/v1"),
        ("https://h/v1beta/openai/", "openai", "https://h/v1beta/openai"),
        ("https://h/v1/messages", "anthropic", "https://h"),
        ("https://h/api", "anthropic", "https://h/api"),
    ],
)
def test_addresses(given: str, api: Any, url: str) -> None:
    """Addresses are accepted in the forms in which people copy them."""
    assert base_url(given, api) == url


ODD = [
    "http://[::1",
    "http://localhost:-1",
    "http://localhost:99999",
    "http://localhost:²",
    "http://localhost:0",
]
ODD_HOSTS = [
    "http://²:8000",
    "http://１２７.0.0.1",
    "http://999.999.999.999/v1",
    "http://" + "1" * 70,
    "http://a..b",
    "http://\u00ad",
]


@pytest.mark.parametrize("url", ODD_HOSTS)
def test_odd_hosts(url: str) -> None:
    """A host that cannot exist ends in one line that names it."""
    with pytest.raises(InputError, match=r"cannot be (used|reached)") as raised:
        probe(url, model="m")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://h",
        "http://",
        "http://me:secret9@h",
        "http://h?key=1",
        *ODD,
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    """An invalid address is refused before anything is sent, and the error does not show its password."""
    with pytest.raises(InputError, match=r"url=.* is invalid") as raised:
        probe(url)
    assert "secret9" not in str(raised.value)


def test_unreachable() -> None:
    """An error says that no server answers at the address."""
    with (
        closed_address() as address,
        pytest.raises(InputError, match=r"cannot be reached: .*refused"),
    ):
        probe(address, model="m")


def test_nearest() -> None:
    """The nearest names are the similar ones or, if there are none, the first ones."""
    assert nearest("GPT-6-lune", ["a", "gpt-6-luna", "gpt-6-sol"]).startswith(
        "gpt-6-luna"
    )
    assert nearest("zzz", list("abcdefg")) == "a, b, c, d, e"
