"""Tests that a client sends further requests as the provider's package sends the first one, and raises its errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helm.common.cache import BlackHoleCacheConfig

from helm_longctx.data.download import retry_after
from helm_longctx.failures import failure_of_error, list_causes
from helm_longctx.models.apis import OpenAIClient
from tests.models.apis.making import KINDS, REQUEST, make
from tests.support.json_http import JsonHandler, ModelServer, serve_handler
from tests.support.servers.faults import Fault
from tests.support.servers.llm import serve

_FAULTS = (
    Fault.RATE_LIMIT,
    Fault.BUSY,
    Fault.SERVER_ERROR,
    Fault.OVERLOADED,
    Fault.UNAUTHORIZED,
    Fault.GONE,
    Fault.TOO_LONG,
    Fault.TIMEOUT,
    Fault.DROPPED,
    Fault.CUT,
    Fault.MALFORMED,
)


class Recorder(ModelServer):
    """A server that answers any chat, and keeps the headers of all requests."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []

    def handle(self, handler: JsonHandler) -> None:
        """Note the headers of a chat, and answer `Yes.`"""
        handler.read_body()
        self.headers.append(
            {name.lower(): value for name, value in handler.headers.items()}
        )
        usage = {"prompt_tokens": 9, "completion_tokens": 1}
        message = {"role": "assistant", "content": "Yes."}
        handler.send_json(200, self.reply({"message": message}, usage))


def test_headers() -> None:
    """Each request has all headers of the first one, which the package has made, with the length of its own body."""
    server = Recorder()
    headers = {"X-Team": "long"}
    with server.serve() as url:
        client = OpenAIClient(
            BlackHoleCacheConfig(), base_url=url, api_key="sk-mine", headers=headers
        )
        for prompt in ("Is it?", "Is it not?", "Or is it?"):
            client.ask(replace(REQUEST, prompt=prompt))
    first, *others = server.headers
    assert first["authorization"] == "Bearer sk-mine"
    assert first["x-team"] == "long"
    assert first["user-agent"].startswith("OpenAI/")
    lengths = {sent.pop("content-length") for sent in server.headers}
    assert len(lengths) == 3
    assert others == [first, first]


def test_a_query_of_the_package() -> None:
    """What a package adds to an address, as Azure's clients do with a version, is in each request."""
    paths = []

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            self.read_body()
            paths.append(self.path)
            self.send_json(200, {})

    class VersionedClient(OpenAIClient):
        def make_library(self, **options: Any) -> Any:
            return super().make_library(**options, default_query={"version": "2"})

    with serve_handler(Handler) as url:
        client = VersionedClient(BlackHoleCacheConfig(), base_url=url)
        for path in ("/chat/completions", "/responses"):
            for _ in range(2):
                client._post_content(f"{url}{path}", b"{}")
    assert paths == [
        "/v1/chat/completions?version=2",
        "/v1/chat/completions?version=2",
        "/v1/responses?version=2",
        "/v1/responses?version=2",
    ]


@pytest.mark.parametrize("status", [302, 303, 307, 308])
def test_a_redirect_of_a_further_request(status: int) -> None:
    """Neither the key nor the prompt of a further request goes to another server, and a redirect within it is followed."""
    elsewhere = Recorder()
    paths = []

    class Redirecting(JsonHandler):
        target = "/v1/moved"

        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            self.read_body()
            paths.append(self.path)
            if len(paths) == 1 or self.path == "/v1/moved":
                self.send_json(200, {})
                return
            self.send_response(status)
            self.send_header("Location", self.target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            paths.append(self.path)
            self.send_json(200, {})

    with elsewhere.serve() as other, serve_handler(Redirecting) as url:
        client = OpenAIClient(
            BlackHoleCacheConfig(), base_url=url, api_key="sk-mine-12345"
        )
        address = f"{url}/chat/completions"
        for _ in range(2):
            client._post_content(address, b"{}")
        assert paths[1:] == ["/v1/chat/completions", "/v1/moved"]
        Redirecting.target = f"{other}/chat/completions"
        with pytest.raises(Exception, match="onnection error") as raised:
            client._post_content(address, b"{}")
    assert any("redirects to" in str(cause) for cause in list_causes(raised.value))
    assert elsewhere.headers == []


def test_a_cookie_is_sent_back() -> None:
    """A cookie with which a load balancer names a server comes back to it."""
    seen = []

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            self.read_body()
            seen.append(self.headers.get("Cookie"))
            self.send_response(200)
            self.send_header("Set-Cookie", f"server={len(seen)}; Path=/")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    with serve_handler(Handler) as url:
        client = OpenAIClient(BlackHoleCacheConfig(), base_url=url)
        for _ in range(3):
            client.post("/v1/chat/completions", {})
            client._post_content(f"{url}/chat/completions", b"{}")
    assert seen[1:] == [f"server={number}" for number in range(1, 6)]


def describe(error: BaseException) -> tuple[Any, ...]:
    """Return what our code and users see of an error."""
    causes = [type(cause) for cause in list_causes(error)]
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    return (
        str(error),
        causes,
        status,
        body,
        retry_after(error),
        failure_of_error(error),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", _FAULTS, ids=lambda fault: fault.name)
def test_errors(fault: Fault, kind: str) -> None:
    """The error of a further request is the one that the package raises for a first request."""
    errors = []
    for answered in (0, 1):
        with serve(lambda prompt: "Yes.") as server:
            client = make(kind, server, timeout=0.3)
            for _ in range(answered):
                client.ask(REQUEST)
            server.plan = lambda prompt, before: fault
            with pytest.raises(Exception) as raised:  # noqa: PT011 - of any package
                client.ask(REQUEST)
            errors.append(describe(raised.value))
            assert len(server.calls) == answered + 1
    assert errors[0] == errors[1]
