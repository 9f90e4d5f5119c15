"""Servers that redirect, send bombs or never end, against everything that sends them a key or a prompt."""

from __future__ import annotations

import gzip
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest
import requests
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache import BlackHoleCacheConfig
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig
from helm.common.request import RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, FailureError
from helm_longctx.helm.patches import apply_patches
from helm_longctx.judging.keys.client import judge_client
from helm_longctx.models.apis import (
    AnthropicClient,
    OpenAIClient,
    availability,
    transport,
)
from helm_longctx.models.apis.availability import list_models
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.sending import try_once
from helm_longctx.models.apis.transport import guard_library
from helm_longctx.models.endpoints.probe import probe
from helm_longctx.models.results import failure_of
from helm_longctx.run_settings import (
    JUDGE_TIMEOUT,
    JUDGE_WAIT,
    MAX_REPLY,
    TIMEOUT,
    settings_in_use,
)
from tests.models.apis.making import KINDS, REQUEST
from tests.support.servers import hostile
from tests.support.servers.hostile import WHOLE, Act, Hostile, attack

KEY = "sk-a-secret-key-0123456789"
HEADER = "a-secret-header-0123456789"
SIZE = 1 << 26
"""Bytes of a bomb, of which 65,000 come over the network."""

OWN = {"text": "Yes", "logprob": 0.0, "tokens": [], "request_time": 0.0}
"""A reply to HELM's client for servers without a protocol of a provider."""

HELMS = (
    ("openai", "anthropic")
    if int(anthropic.__version__.partition(".")[0]) < 1
    else ("openai",)
)
"""Packages with which HELM's own clients work. Since anthropic 1, HELM's client cannot send a temperature."""

PAUSE = 0.1
"""Seconds between two pieces of a reply that would take ten seconds."""


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_HEADER", HEADER)
    monkeypatch.setenv(JUDGE_WAIT, "0.01")


@pytest.fixture
def other() -> Iterator[Hostile]:
    """A server that would answer, but whose address no client got."""
    with attack(hostile.send(WHOLE["chat"])) as running:
        yield running


def make(kind: str, server: Hostile, **arguments: Any) -> ProviderClient:
    arguments = {"api_key": KEY, "headers": {"X-Api-Key": "$MY_HEADER"}, **arguments}
    if kind == "anthropic":
        return AnthropicClient(
            BlackHoleCacheConfig(), base_url=server.address, **arguments
        )
    return OpenAIClient(
        BlackHoleCacheConfig(), base_url=f"{server.address}/v1/", form=kind, **arguments
    )


def helms_client(kind: str, server: Hostile, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return HELM's own client of a judge, as judging makes it."""
    classes = {
        "openai": (
            "openai_client.OpenAIClient",
            {"base_url": f"{server.address}/v1/", "max_retries": 0},
        ),
        "anthropic": (
            "anthropic_client.AnthropicMessagesClient",
            {"anthropic_model_name": "m"},
        ),
        "http": (
            "http_model_client.HTTPModelClient",
            {"base_url": server.address, "do_cache": False},
        ),
    }
    name, arguments = classes[kind]
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
    arguments |= {"api_key": KEY} if kind == "openai" else {}
    record = ModelDeployment(
        "hostile/judge",
        ClientSpec(f"helm.clients.{name}", arguments),
        "longctx/lexical",
    )
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(record.name, None)
    register_model_deployment(record)
    credentials = {"hostileApiKey": KEY} if kind == "anthropic" else {}
    return judge_client(
        record.name, AutoClient(credentials, "", BlackHoleCacheBackendConfig())
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", KINDS)
def test_redirects(kind: str, status: int, stream: bool, other: Hostile) -> None:
    """Another server gets nothing, and the failure names both."""
    with attack(
        hostile.redirect(f"{other.address}/v1/chat/completions", status)
    ) as server:
        result = make(kind, server, stream=stream).make_request(REQUEST)
    assert failure_of(result) is Failure.UNREACHABLE
    assert f"{server.address} redirects to {other.address}" in str(result.error)
    assert len(server.seen) == 1
    assert other.seen == []


@pytest.mark.parametrize(
    "target",
    ["https://127.0.0.1:{port}/v1", "http://localhost:{port}/v1", "//localhost:{port}"],
)
def test_redirects_to_another_origin_of_the_same_machine(target: str) -> None:
    """Another scheme or another name is another origin."""
    port: list[str] = []
    act: Act = lambda handler: hostile.redirect(target.format(port=port[0]))(handler)  # noqa: E731
    with attack(act) as server:
        port.append(server.address.rpartition(":")[2])
        result = make("chat", server).make_request(REQUEST)
    assert failure_of(result) is Failure.UNREACHABLE
    assert "redirects to" in str(result.error)
    assert len(server.seen) == 1


def test_redirects_within_an_origin() -> None:
    """A redirect within the server is followed, for example to a path with a slash at its end."""
    with attack(hostile.redirect("/new/chat"), path="/v1") as server:
        result = make("chat", server).make_request(REQUEST)
    assert [completion.text for completion in result.completions] == ["Yes"]
    assert [KEY in seen and HEADER in seen for seen in server.seen] == [True, True]


@pytest.mark.parametrize("kind", [*HELMS, "http"])
def test_redirects_of_helms_clients(
    kind: str,
    other: Hostile,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """HELM's clients have the packages of the providers, or `requests`. The log names both servers."""
    with attack(hostile.redirect(f"{other.address}/v1/chat/completions")) as server:
        client = helms_client(kind, server, monkeypatch)
        result = try_once(
            client.make_request, replace(REQUEST, model_deployment="hostile/judge")
        ).result
    assert not result.success
    assert server.seen
    assert other.seen == []
    assert f"{server.address} redirects to {other.address}" in caplog.text


def test_redirects_that_turn_a_post_into_a_get(
    other: Hostile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second redirect gets the headers of the first request, so it may not leave the origin either."""
    targets = {
        "POST": hostile.redirect("/next", 303),
        "GET": hostile.redirect(f"{other.address}/v1", 302),
    }
    with attack(lambda handler: targets[handler.command](handler)) as server:
        client = helms_client("http", server, monkeypatch)
        assert not try_once(
            client.make_request, replace(REQUEST, model_deployment="hostile/judge")
        ).result.success
    assert [seen.split()[0] for seen in server.seen] == ["POST", "GET"]
    assert other.seen == []
    assert f"{server.address} redirects to {other.address}" in caplog.text


def test_redirects_of_questions_about_models(other: Hostile) -> None:
    """`models add`, `doctor` with HELM's clients, and batches with our clients do not follow a redirect to another server."""
    with attack(hostile.redirect(f"{other.address}/v1/models")) as server:
        with pytest.raises(
            InputError, match=f"{server.address} redirects to {other.address}"
        ):
            probe(
                f"{server.address}/v1", model="m", headers={"X-Api-Key": "$MY_HEADER"}
            )
        bare = openai.OpenAI(
            api_key=KEY,
            base_url=f"{server.address}/v1/",
            default_headers={"X-Api-Key": HEADER},
        )
        for library in (bare, make("chat", server).bulk_library()):
            with pytest.raises(
                (openai.APIConnectionError, FailureError)
            ):  # since openai 3, our error is not wrapped
                list_models(SimpleNamespace(client=library))
    assert server.seen
    assert other.seen == []


REPLIES: dict[str, Callable[[str], Act]] = {
    "bomb": lambda kind: hostile.bomb(SIZE, WHOLE[kind]),
    "error": lambda kind: hostile.bomb(SIZE, {"error": {"message": "no"}}, status=500),
    "plain": lambda kind: hostile.send(
        json.dumps(WHOLE[kind]).encode() + b" " * (SIZE >> 3)
    ),
    "double": lambda kind: hostile.bomb(SIZE, WHOLE[kind], encoding="gzip, gzip"),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("kind", KINDS)
def test_large_replies(kind: str, reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies that are too large are malformed answers, and they take no more memory than the limit allows."""
    monkeypatch.setenv(MAX_REPLY, "1")
    with attack(REPLIES[reply](kind)) as server:
        client = make(kind, server)
        peak, result = measure(lambda: client.make_request(REQUEST))
    assert failure_of(result) is Failure.MALFORMED, result.error
    assert peak < 8 << 20
    assert reply == "double" or f"larger than 1 MiB, the limit in {MAX_REPLY}" in str(
        result.error
    )


@pytest.mark.parametrize("kind", KINDS)
def test_streams_without_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for all events together and for a single event."""
    monkeypatch.setenv(MAX_REPLY, "1")
    good = hostile.events(kind, ["Yes"])
    for act in (
        hostile.stream(good, "x" * 100_000),
        hostile.stream([{"choices": [], "x": " " * (SIZE >> 3)}, *good]),
    ):
        with attack(act) as server:
            client = make(kind, server, stream=True)
            peak, result = measure(lambda: client.make_request(REQUEST))  # noqa: B023
        assert failure_of(result) is Failure.MALFORMED, result.error
        assert peak < 16 << 20


def measure(ask: Callable[[], RequestResult]) -> tuple[int, RequestResult]:
    """Return the peak of memory during a second call, because the first call also imports modules."""
    ask()
    tracemalloc.start()
    try:
        result = ask()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_large_replies_to_helms_clients_and_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit also holds for judges with HELM's clients, and for lists of models."""
    monkeypatch.setenv(MAX_REPLY, "1")
    with attack(hostile.bomb(SIZE, {"data": [], **WHOLE["chat"]})) as server:
        for kind in HELMS:
            client = helms_client(kind, server, monkeypatch)
            request = replace(REQUEST, model_deployment="hostile/judge")
            attempt = partial(try_once, client.make_request, request)
            peak, result = measure(lambda attempt=attempt: attempt().result)
            assert not result.success
            assert peak < 8 << 20
        with pytest.raises((openai.APIConnectionError, FailureError)) as error:
            list_models(
                SimpleNamespace(
                    client=openai.OpenAI(api_key=KEY, base_url=f"{server.address}/v1/")
                )
            )
        assert "larger than 1 MiB" in str(error.value.__cause__ or error.value)


@pytest.mark.parametrize("status", [200, 303])
def test_large_replies_to_clients_with_requests(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit also holds for HELM's client that uses `requests`, and after a redirect within the server."""
    monkeypatch.setenv(MAX_REPLY, "1")
    large = hostile.bomb(SIZE, OWN)
    acts = {
        "POST": large if status == 200 else hostile.redirect("/next", status),
        "GET": large,
    }
    with attack(lambda handler: acts[handler.command](handler)) as server:
        client = helms_client("http", server, monkeypatch)
        peak, result = measure(
            lambda: (
                try_once(
                    client.make_request,
                    replace(REQUEST, model_deployment="hostile/judge"),
                ).result
            )
        )
    assert not result.success
    assert f"larger than 1 MiB, the limit in {MAX_REPLY}" in str(result.error)
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "act", [hostile.send(OWN), hostile.bomb(1000, OWN), hostile.drip(OWN, 0.001)]
)
def test_replies_to_clients_with_requests(
    act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies within the limits are answers, whether they have a length, are compressed, or arrive in pieces."""
    with attack(act) as server:
        client = helms_client("http", server, monkeypatch)
        result = try_once(
            client.make_request, replace(REQUEST, model_deployment="hostile/judge")
        ).result
    assert [completion.text for completion in result.completions] == ["Yes"], (
        result.error
    )


def test_files_of_batches() -> None:
    """A file of a batch can be larger than a reply. Its reader limits the lines (`tests/runner/batches/test_results.py`)."""
    lines = b"\n".join([b"x" * 1000] * 2000)
    with attack(hostile.send(lines)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(MAX_REPLY, "0.01")
        with (
            make("chat", server)
            .bulk_library()
            .files.with_streaming_response.content("f") as response
        ):
            assert sum(1 for _ in response.iter_lines()) == 2000


DRIPS: dict[str, Callable[[str], Act]] = {
    "body": lambda kind: hostile.drip(WHOLE[kind], PAUSE),
    "headers": lambda kind: hostile.drip_headers(WHOLE[kind], PAUSE),
    "stream": lambda kind: hostile.stream(
        hostile.events(kind, ["Yes"]), {"type": "ping", "choices": []}, PAUSE
    ),
}


@pytest.mark.parametrize("drip", DRIPS)
@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_replies_that_drip(
    kind: str, drip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole request has a time limit, however often something arrives. The server would answer after a while."""
    monkeypatch.setenv(TIMEOUT, "1")
    with attack(DRIPS[drip](kind)) as server:
        result = make(kind, server, stream=drip == "stream").make_request(REQUEST)
    assert failure_of(result) is Failure.TEMPORARY, result.error


@pytest.mark.parametrize("drip", ["body", "headers"])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_judges_that_drip(
    kind: str, drip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of calls to judges holds for HELM's clients, too."""
    monkeypatch.setenv(JUDGE_TIMEOUT, "1")
    with attack(DRIPS[drip]("anthropic" if kind == "anthropic" else "chat")) as server:
        client = helms_client(kind, server, monkeypatch)
        assert not try_once(
            client.make_request, replace(REQUEST, model_deployment="hostile/judge")
        ).result.success


def test_clients_with_requests_that_get_a_drip(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole body has a time limit, however often something arrives."""
    monkeypatch.setenv(TIMEOUT, "1")
    with attack(hostile.drip(OWN, PAUSE)) as server:
        client = helms_client("http", server, monkeypatch)
        result = try_once(
            client.make_request, replace(REQUEST, model_deployment="hostile/judge")
        ).result
    assert "the server has not sent its whole answer in time" in str(result.error)


def test_clients_with_requests_that_get_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that stays silent has the time of the setting, if the client sets no limit."""
    monkeypatch.setenv(TIMEOUT, "0.5")
    ended = threading.Event()
    with attack(lambda handler: ended.wait() and None) as server:
        with pytest.raises(requests.exceptions.ReadTimeout):
            requests.post(server.address, json={})
        ended.set()


def test_lists_that_drip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of models has less time than an answer."""
    monkeypatch.setattr(availability, "PATIENCE", 1.0)
    with attack(hostile.drip({"data": [{"id": "m"}]}, PAUSE)) as server:
        for library in (
            make("chat", server).client,
            openai.OpenAI(api_key=KEY, base_url=f"{server.address}/v1/"),
        ):
            with pytest.raises(openai.APITimeoutError):
                list_models(SimpleNamespace(client=library))


def test_a_deployments_own_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment's timeout limits the silence of the server. The setting limits the time of the whole answer."""
    pause = 0.02
    # Less than the whole answer takes, and more than a busy machine lets a thread wait.
    silence = 0.75 * hostile.END * pause
    with attack(hostile.drip(WHOLE["chat"], pause)) as server:
        assert make("chat", server, timeout=silence).make_request(REQUEST).success
    monkeypatch.setenv(TIMEOUT, "0.6")
    with attack(hostile.drip(WHOLE["chat"], PAUSE)) as server:
        result = make("chat", server, timeout=0.5).make_request(REQUEST)
    assert failure_of(result) is Failure.TEMPORARY


def test_a_compressed_reply() -> None:
    """A compressed reply is an answer."""
    for kind in KINDS:
        with attack(hostile.bomb(100, WHOLE[kind])) as server:
            assert make(kind, server).make_request(REQUEST).completions[0].text == "Yes"
        assert "Accept-Encoding: gzip\n" in server.seen[0].replace("\r", "")


@pytest.mark.parametrize(
    "after",
    [
        b"\0" * 512,
        gzip.compress(b" \n", mtime=0),
        gzip.compress(b" " * 200_000),
        b"more",
        b"\x1f\x8b",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_reply_with_more_after_it(kind: str, after: bytes) -> None:
    """A gzip reply of more than one piece can have further members, which are decoded, or other bytes, which are not."""
    body = gzip.compress(json.dumps(WHOLE[kind]).encode() + b" " * 200_000) + after
    with attack(hostile.send(body, **{"Content-Encoding": "gzip"})) as server:
        result = make(kind, server, timeout=5).make_request(REQUEST)
    assert [completion.text for completion in result.completions] == ["Yes"], (
        result.error
    )


def test_a_second_member_belongs_to_the_reply() -> None:
    """A reply that is divided between two members of gzip is read as a whole."""
    body = json.dumps(WHOLE["chat"]).encode()
    with attack(
        hostile.send(
            gzip.compress(body[:30], mtime=0) + gzip.compress(body[30:]),
            **{"Content-Encoding": "gzip"},
        )
    ) as server:
        assert make("chat", server).make_request(REQUEST).completions[0].text == "Yes"


def test_decoding_has_the_time_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply that has arrived in time is given up while it is decoded, as soon as the time of the request is over."""
    monkeypatch.setenv(TIMEOUT, "0.5")
    monkeypatch.setattr(transport, "check_size", lambda size, most: time.sleep(0.3))
    with attack(hostile.bomb(1 << 20, WHOLE["chat"])) as server:
        result = make("chat", server).make_request(REQUEST)
    assert failure_of(result) is Failure.TEMPORARY, result.error


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 64 MiB by default. A wrong value is refused before anything is sent."""
    assert settings_in_use().max_reply_bytes == 64 << 20
    monkeypatch.setenv(MAX_REPLY, "much")
    with pytest.raises(InputError, match="HELM_LONGCTX_MAX_REPLY='much' is invalid"):
        OpenAIClient(None, base_url="http://localhost")


def test_clients_are_guarded_once() -> None:
    """HELM's AutoClient returns the same client for each request, which gets our transport once."""
    apply_patches()
    record = ModelDeployment(
        "hostile/twice",
        ClientSpec("helm.clients.openai_client.OpenAIClient", {"api_key": "k"}),
        "longctx/lexical",
    )
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(record.name, None)
    register_model_deployment(record)
    auto = AutoClient({}, "", BlackHoleCacheBackendConfig())
    libraries = [auto._get_client(record.name).client for _ in range(2)]
    assert libraries[0] is libraries[1]
    assert guard_library(libraries[0]) is libraries[0]
