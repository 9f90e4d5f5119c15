"""Tokens: kept, shared, renewed in time; against a real server."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from helm_longctx.judging.keys import oauth, tokens
from helm_longctx.judging.keys.oauth import ClientCredentials, TokenError, request_token
from helm_longctx.judging.keys.tokens import TokenSource
from tests.judging.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer, serve_tokens


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with serve_tokens() as server:
        yield server


def client(server: TokenServer, **changes: str) -> ClientCredentials:
    return ClientCredentials(
        **{"token_url": f"{server.url}/token", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, **changes}
    )


def test_a_token_is_asked_for_once(server: TokenServer, tmp_path: Path) -> None:
    """By a source, and by another one of the same client, as in a later run; another scope is another token."""
    first = TokenSource(client(server, scope="judge read"), tmp_path)
    assert first.current() == first.current() == TokenSource(client(server, scope="judge read"), tmp_path).current()
    assert server.asked == [{"grant_type": "client_credentials", "scope": "judge read"}]
    TokenSource(client(server), tmp_path).current()
    assert server.asked[1:] == [{"grant_type": "client_credentials"}]


def test_only_the_owner_can_read_a_token(server: TokenServer, tmp_path: Path) -> None:
    """The folder and its files; no file's name or content tells the client's secret."""
    folder = tmp_path / "cache" / "oauth"
    token = TokenSource(client(server), folder).current()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token in file.read_text()
    assert sorted(path.suffix for path in folder.iterdir()) in ([".json"], [".json", ".lock"])
    assert not any(CLIENT_SECRET in path.name + path.read_text() for path in folder.iterdir())


def test_a_token_file_is_private_from_its_first_byte(
    server: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where everything that a program makes is open to all."""
    modes = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (modes.append(stat.S_IMODE(Path(a).stat().st_mode)), replace(a, b)))
    before = os.umask(0)
    try:
        TokenSource(client(server), tmp_path).current()
    finally:
        os.umask(before)
    assert modes == [0o600]


def test_a_token_is_renewed_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of a short life early, and no earlier."""
    with serve_tokens(life=100) as server:
        source = TokenSource(client(server), tmp_path)
        first = source.current()
        issued = server.tokens[first] - 100
        monkeypatch.setattr(tokens, "time", SimpleNamespace(time=lambda: issued + 78, monotonic=time.monotonic))
        assert source.current() == first
        monkeypatch.setattr(tokens, "time", SimpleNamespace(time=lambda: issued + 85, monotonic=time.monotonic))
        assert source.current() != first
    monkeypatch.undo()
    with serve_tokens(life=None) as server:
        assert request_token(client(server)).fresh_until == float("inf")
        started = time.time()
        server.life = 3600
        assert started + 3540 <= request_token(client(server)).fresh_until <= time.time() + 3540


def test_many_threads_ask_once(server: TokenServer, tmp_path: Path) -> None:
    """For the first token, and for another when all of theirs were refused."""
    source = TokenSource(client(server), tmp_path)
    with ThreadPoolExecutor(32) as pool:
        tokens = set(pool.map(lambda _: source.current(), range(32)))
        assert len(tokens) == len(server.asked) == 1
        (old,) = tokens
        new = set(pool.map(lambda _: source.renew(old), range(32)))
    assert len(new) == 1
    assert new != tokens
    assert len(server.asked) == 2


def test_two_processes_ask_once(server: TokenServer, tmp_path: Path) -> None:
    """The second waits for the first's token."""
    code = (
        "import sys; from pathlib import Path; from helm_longctx.judging.keys.tokens import *\n"
        "from tests.judging.token_server import CLIENT_ID, CLIENT_SECRET\n"
        "source = TokenSource(ClientCredentials(sys.argv[1], CLIENT_ID, CLIENT_SECRET), Path(sys.argv[2]))\n"
        "print('ready', flush=True); input(); print(source.current())"
    )
    command = [sys.executable, "-c", code, f"{server.url}/token", str(tmp_path)]
    root = Path(__file__).parents[2]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, cwd=root, **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in both] == ["ready\n", "ready\n"]
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    one, other = (process.communicate(timeout=60)[0] for process in both)
    assert one == other == f"{next(iter(server.tokens))}\n"
    assert len(server.asked) == 1


def test_the_secret_goes_where_the_server_wants_it(tmp_path: Path) -> None:
    """Into the header, else into the body."""
    with serve_tokens(auth="post") as server:
        assert request_token(client(server)).value in server.tokens
    assert [set(body) for body in server.asked] == [
        {"grant_type"},
        {"grant_type", "client_id", "client_secret"},
    ]
    with serve_tokens(auth="basic") as server:
        request_token(client(server))
    assert len(server.asked) == 1


def test_a_fault_of_the_server_is_not_the_end(server: TokenServer, tmp_path: Path) -> None:
    """It is asked again."""
    server.faults = [503, 429]
    assert TokenSource(client(server), tmp_path).current() in server.tokens
    assert len(server.asked) == 3


def test_a_refusal_is_told_without_the_secret(server: TokenServer, tmp_path: Path) -> None:
    """The server's reason is kept, its quotation of the secret is not; who asks meanwhile is told the same."""
    source = TokenSource(client(server, client_secret="wrong-secret-1234"), tmp_path)
    with pytest.raises(TokenError, match="invalid_client: wrong secret") as error:
        source.current()
    assert error.value.refused
    assert "wrong-secret-1234" not in str(error.value)
    asked = len(server.asked)
    with pytest.raises(TokenError, match="invalid_client"):
        source.current()
    assert len(server.asked) == asked
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ({"answer": {"token": "x"}}, "no access_token"),
        ({"answer": {"access_token": "abc", "expires_in": "soon"}}, "its response is not a token"),
        ({"answer": {"access_token": "abc", "expires_in": [3600]}}, "its response is not a token"),
        ({"answer": {"access_token": "abc", "expires_in": 10**400}}, "its response is not a token"),
        ({"answer": ["x"]}, "its response (is not a token|has no access_token)"),
        ({"faults": [400, 400]}, "no access_token"),
    ],
)
def test_a_strange_answer_is_an_error(behaviour: dict[str, object], told: str) -> None:
    """It names the server and what is wrong."""
    with serve_tokens(**behaviour) as server, pytest.raises(TokenError, match=told) as error:
        request_token(client(server))
    assert server.url in str(error.value)


def test_a_server_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come back: the failure is no refusal, and after a pause it is asked again."""
    monkeypatch.setattr(oauth, "ATTEMPTS", 1)
    monkeypatch.setattr(tokens, "PAUSE", 0)
    with serve_tokens() as server:
        pass
    source = TokenSource(client(server), tmp_path)
    with pytest.raises(TokenError, match="ConnectionError") as error:
        source.current()
    assert not error.value.refused


@pytest.mark.parametrize("content", ["", "{", "[]", '{"value": "x"}', '{"value": "x", "fresh_until": "soon"}'])
def test_a_damaged_file_is_written_anew(server: TokenServer, tmp_path: Path, content: str) -> None:
    """It costs a request."""
    TokenSource(client(server), tmp_path).current()
    (file,) = tmp_path.glob("*.json")
    file.write_text(content)
    assert TokenSource(client(server), tmp_path).current() in server.tokens
    assert len(server.asked) == 2


def test_a_folder_that_cannot_be_made(server: TokenServer, tmp_path: Path) -> None:
    """Tokens are then kept in memory only."""
    (tmp_path / "file").touch()
    source = TokenSource(client(server), tmp_path / "file" / "oauth")
    assert source.current() == source.current()
    assert len(server.asked) == 1


def test_secrets_are_not_shown(server: TokenServer) -> None:
    """Not by the records that hold them."""
    held = client(server)
    assert CLIENT_SECRET not in repr(held)
    token = request_token(held)
    assert token.value not in repr(token)
