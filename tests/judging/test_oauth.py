"""Tests that tokens are kept, shared and renewed in time, with a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from helm_longctx.models.apis import oauth
from helm_longctx.models.apis.oauth import (
    ClientCredentials,
    TokenError,
    TokenSource,
    request_token,
    token_source,
)
from helm_longctx.run_settings import MAX_REPLY, TOKEN_TIMEOUT
from tests.judging.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServer,
    serve_tokens,
)
from tests.support.servers import hostile
from tests.support.servers.hostile import Act, attack


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server that failed be asked again soon."""
    monkeypatch.setattr(oauth, "_FIRST_WAIT", 0.05)


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with serve_tokens() as server:
        yield server


def client(server: TokenServer, **changes: str) -> ClientCredentials:
    return ClientCredentials(
        **{
            "token_url": f"{server.url}/token",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            **changes,
        }
    )


def test_a_token_is_asked_for_once(server: TokenServer, tmp_path: Path) -> None:
    """All judges of a client share its source. Another scope is another token. No file has a token."""
    first = token_source(client(server, scope="judge read"))
    assert (
        first.current()
        == first.current()
        == token_source(client(server, scope="judge read")).current()
    )
    assert server.asked == [{"grant_type": "client_credentials", "scope": "judge read"}]
    token_source(client(server)).current()
    assert server.asked[1:] == [{"grant_type": "client_credentials"}]
    assert not list(tmp_path.iterdir())


def test_a_token_is_renewed_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token is renewed a fifth of its short lifetime early, and no earlier."""
    with serve_tokens(life=100) as server:
        source = TokenSource(client(server))
        first = source.current()
        issued = server.tokens[first] - 100
        monkeypatch.setattr(
            oauth,
            "time",
            SimpleNamespace(time=lambda: issued + 78, monotonic=time.monotonic),
        )
        assert source.current() == first
        monkeypatch.setattr(
            oauth,
            "time",
            SimpleNamespace(time=lambda: issued + 85, monotonic=time.monotonic),
        )
        assert source.current() != first
    monkeypatch.undo()
    with serve_tokens(life=None) as server:
        assert request_token(client(server)).fresh_until == float("inf")
        started = time.time()
        server.life = 3600
        assert (
            started + 3540
            <= request_token(client(server)).fresh_until
            <= time.time() + 3540
        )


def test_many_threads_ask_once(server: TokenServer, tmp_path: Path) -> None:
    """For the first token, and for another when all of theirs were refused."""
    source = TokenSource(client(server))
    with ThreadPoolExecutor(32) as pool:
        tokens = set(pool.map(lambda _: source.current(), range(32)))
        assert len(tokens) == len(server.asked) == 1
        (old,) = tokens
        new = set(pool.map(lambda _: source.current(old), range(32)))
    assert len(new) == 1
    assert new != tokens
    assert len(server.asked) == 2


def test_the_secret_goes_where_the_server_wants_it(tmp_path: Path) -> None:
    """The secret is sent in the header, or in the body if the server wants it there."""
    with serve_tokens(auth="post") as server:
        assert request_token(client(server)).value in server.tokens
    assert [set(body) for body in server.asked] == [
        {"grant_type"},
        {"grant_type", "client_id", "client_secret"},
    ]
    with serve_tokens(auth="basic") as server:
        request_token(client(server))
    assert len(server.asked) == 1


def test_a_fault_of_the_server_is_not_the_end(
    server: TokenServer, tmp_path: Path
) -> None:
    """A request for a token is repeated after a fault of the server."""
    server.faults = [503, 429]
    assert TokenSource(client(server)).current() in server.tokens
    assert len(server.asked) == 3


def test_a_refusal_is_told_without_the_secret(
    server: TokenServer, tmp_path: Path
) -> None:
    """The server's reason is kept, its quotation of the secret is not; who asks meanwhile is told the same."""
    source = TokenSource(client(server, client_secret="wrong-secret-1234"))
    with pytest.raises(TokenError, match="invalid_client: wrong secret") as error:
        source.current()
    assert error.value.refused
    assert "wrong-secret-1234" not in str(error.value)
    asked = len(server.asked)
    with pytest.raises(TokenError, match="invalid_client"):
        source.current()
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ({"answer": {"token": "x"}}, "no access_token"),
        (
            {"answer": {"access_token": "abc", "expires_in": "soon"}},
            "its response is not a token",
        ),
        (
            {"answer": {"access_token": "abc", "expires_in": [3600]}},
            "its response is not a token",
        ),
        (
            {"answer": {"access_token": "abc", "expires_in": 10**400}},
            "its response is not a token",
        ),
        ({"answer": ["x"]}, "its response (is not a token|has no access_token)"),
        ({"faults": [400, 400]}, "no access_token"),
    ],
)
def test_a_strange_answer_is_an_error(behaviour: dict[str, object], told: str) -> None:
    """A strange answer ends in an error that names the server and what is wrong."""
    with (
        serve_tokens(**behaviour) as server,
        pytest.raises(TokenError, match=told) as error,
    ):
        request_token(client(server))
    assert server.url in str(error.value)


def test_a_server_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that cannot be reached is not a refusal, and after a pause it is asked again."""
    monkeypatch.setattr(oauth, "_ATTEMPTS", 1)
    monkeypatch.setattr(oauth, "_PAUSE", 0)
    with serve_tokens() as server:
        pass
    source = TokenSource(client(server))
    with pytest.raises(TokenError, match="ConnectionError") as error:
        source.current()
    assert not error.value.refused


def test_a_redirect_is_not_followed(server: TokenServer) -> None:
    """A redirect is not followed, so the secret stays with the server that the user named; the error names both."""
    with (
        attack(hostile.redirect(f"{server.url}/token")) as first,
        pytest.raises(TokenError) as error,
    ):
        request_token(
            ClientCredentials(f"{first.address}/token", CLIENT_ID, CLIENT_SECRET)
        )
    assert f"no token from {first.address}/token" in str(error.value)
    assert f"redirects to {server.url}" in str(error.value)
    assert error.value.refused
    assert server.asked == []


LONGEST = 15
"""Seconds after which the test fails. The answer itself would end after twice as many."""


@pytest.mark.parametrize(
    "act",
    [
        hostile.bomb(1 << 26, {"access_token": "a"}),
        hostile.drip({"access_token": "a"}, 0.3),
    ],
)
def test_an_answer_without_end(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without end is limited in bytes and seconds, also if its bytes come one by one."""
    monkeypatch.setenv(TOKEN_TIMEOUT, "1")
    monkeypatch.setenv(MAX_REPLY, "1")
    told = "its response is too large|within 1 seconds; HELM_LONGCTX_TOKEN_TIMEOUT sets the limit"
    start = time.monotonic()
    with attack(act) as server, pytest.raises(TokenError, match=told) as error:
        request_token(
            ClientCredentials(f"{server.address}/token", CLIENT_ID, CLIENT_SECRET)
        )
    assert not error.value.refused
    assert time.monotonic() - start < LONGEST


def test_a_slow_token_server(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user can set how long a token server may need. A late answer is asked for once, and no line of a library is logged."""
    monkeypatch.setattr(
        server,
        "token",
        lambda *_: (time.sleep(0.5), (200, {"access_token": "late"}))[1],
    )
    assert request_token(client(server)).value == "late"
    monkeypatch.setenv(TOKEN_TIMEOUT, "0.2")
    told = (
        "no token from .* within 0.2 seconds; HELM_LONGCTX_TOKEN_TIMEOUT sets the limit"
    )
    with pytest.raises(TokenError, match=told) as error:
        request_token(client(server))
    assert error.value.late


def test_each_attempt_is_announced(
    server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    """After a fault of the token server, a line of ours says why and when it is asked again, and no library adds lines."""
    server.faults = [503, 503]
    request_token(client(server))
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition("; ")[2] for line in lines] == [
        "it is asked again in 0.05 seconds",
        "it is asked again in 0.1 seconds",
    ]
    assert all("status 503" in line and CLIENT_SECRET not in line for line in lines)


def test_secrets_are_not_shown(server: TokenServer) -> None:
    """The `repr` of objects with secrets does not contain them."""
    held = client(server)
    assert CLIENT_SECRET not in repr(held)
    token = request_token(held)
    assert token.value not in repr(token)
