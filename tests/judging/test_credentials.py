"""Tests of the key that a judge's requests carry, and that a failing run does not reveal it, with a real server."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.general import parse_hocon
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.helm.patches import apply_patches
from helm_longctx.judging.judge import JudgeRequest, find_judges
from helm_longctx.judging.keys.client import check_credentials, judge_client
from helm_longctx.redaction.text import redact
from tests.judging.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServer,
    serve_tokens,
)

JUDGE = "somewhere/gpt-4.1-judge"
LLAMA = "somewhere/llama-judge"
CLAUDE = "elsewhere/claude-judge"
JUDGE_KEY, MAIN_KEY, HOST_KEY, FILE_KEY = (
    f"{name}-key-0123456789" for name in ("judge", "main", "host", "file")
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set only the keys of the test, and use a folder of tokens of its own."""
    for name in os.environ:
        if name.endswith(("_KEY", "_TOKEN")) or "JUDGE" in name:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))


@pytest.fixture
def server(environment: None) -> Iterator[TokenServer]:
    """Start a server, and register deployments of judges on it."""
    with serve_tokens() as server:
        for name in (JUDGE, LLAMA, CLAUDE):
            _register(
                name,
                "helm.clients.openai_client.OpenAIClient",
                base_url=f"{server.url}/v1",
                max_retries=0,
            )
        yield server


def _register(name: str, client: str, **arguments: Any) -> str:
    register_model_deployment(
        ModelDeployment(name, ClientSpec(client, arguments), model_name="openai/gpt-4o")
    )
    return name


def _oauth(
    monkeypatch: pytest.MonkeyPatch,
    server: TokenServer,
    prefix: str = "GPT_JUDGE",
    **changes: str,
) -> None:
    names = {
        "TOKEN_URL": f"{server.url}/token",
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRET,
        **changes,
    }
    for name, value in names.items():
        monkeypatch.setenv(f"{prefix}_{name}", value)


def _client(folder: Path, credentials: Mapping[str, Any] | None = None) -> AutoClient:
    (folder / "prod_env").mkdir(exist_ok=True)
    return AutoClient(
        credentials or {},
        str(folder / "prod_env"),
        SqliteCacheBackendConfig(str(folder / "prod_env")),
    )


def _ask(client: Any, deployment: str = JUDGE, prompt: str = "hello") -> RequestResult:
    return client.make_request(
        Request(model="openai/gpt-4o", model_deployment=deployment, prompt=prompt)
    )


@pytest.mark.parametrize(
    ("deployment", "variables", "file", "used", "told"),
    [
        (
            JUDGE,
            {"GPT_JUDGE_API_KEY": JUDGE_KEY, "OPENAI_API_KEY": MAIN_KEY},
            {},
            JUDGE_KEY,
            "Using GPT judge API key from environment variable GPT_JUDGE_API_KEY",
        ),
        (
            LLAMA,
            {"LLAMA_JUDGE_API_KEY": f" {JUDGE_KEY}\n"},
            {},
            JUDGE_KEY,
            "Using LLAMA judge API key from environment variable LLAMA_JUDGE_API_KEY",
        ),
        (
            CLAUDE,
            {"CLAUDE_JUDGE_API_KEY": JUDGE_KEY},
            {},
            JUDGE_KEY,
            "Using CLAUDE judge API key from environment variable CLAUDE_JUDGE_API_KEY",
        ),
        (
            LLAMA,
            {"GPT_JUDGE_API_KEY": JUDGE_KEY, "OPENAI_API_KEY": MAIN_KEY},
            {},
            MAIN_KEY,
            "LLAMA_JUDGE_API_KEY is not set, setting to environment variable OPENAI_API_KEY",
        ),
        (
            JUDGE,
            {
                "GPT_JUDGE_API_KEY": "",
                "SOMEWHERE_API_KEY": HOST_KEY,
                "OPENAI_API_KEY": MAIN_KEY,
            },
            {"somewhereApiKey": FILE_KEY},
            HOST_KEY,
            "GPT_JUDGE_API_KEY is not set, setting to environment variable SOMEWHERE_API_KEY",
        ),
        (
            JUDGE,
            {"OPENAI_API_KEY": MAIN_KEY},
            {"deployments": {JUDGE: FILE_KEY}},
            FILE_KEY,
            "GPT_JUDGE_API_KEY is not set, setting to the key in HELM's credentials file",
        ),
    ],
)
def test_whose_key(
    server: TokenServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    deployment: str,
    variables: dict[str, str],
    file: dict[str, Any],
    used: str,
    told: str,
) -> None:
    """The key is the judge's own, else the host's, the credentials file's, or the one that the client's library reads."""
    credentials = parse_hocon(json.dumps(file))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.INFO)
    server.keys = {used}
    result = _ask(judge_client(deployment, _client(tmp_path, credentials)), deployment)
    assert [result.success, result.completions[0].text] == [True, "fine"]
    assert server.used == [used]
    assert told in caplog.text
    assert f" for model: {deployment}\n" in caplog.text


def test_no_key(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a key the error names the variables to set, and nothing is sent."""
    monkeypatch.setenv("LLAMA_JUDGE_API_KEY", JUDGE_KEY)
    with pytest.raises(
        InputError,
        match=r"GPT_JUDGE_API_KEY, SOMEWHERE_API_KEY, OPENAI_API_KEY, .*somewhereApiKey",
    ):
        judge_client(JUDGE, _client(tmp_path))
    assert server.used == []


def test_a_key_is_not_sent_to_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is not sent to another provider, although OpenAI's library, which HELM's client of Grok uses, would send it."""
    monkeypatch.setenv("OPENAI_API_KEY", MAIN_KEY)
    grok = _register("xai/grok-judge", "helm.clients.grok_client.GrokChatClient")
    with pytest.raises(
        InputError, match=r"set GPT_JUDGE_API_KEY, XAI_API_KEY, GPT_JUDGE_CLIENT_ID"
    ):
        check_credentials(grok, {})
    monkeypatch.setenv("XAI_API_KEY", HOST_KEY)
    check_credentials(grok, {})


def test_clients_that_take_no_key(
    server: TokenServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Clients without a key are HELM's own, and a key that is set for them in vain is reported."""
    monkeypatch.setenv("GPT_JUDGE_API_KEY", JUDGE_KEY)
    simple = _register("simple/gpt-judge", "helm.clients.simple_client.SimpleClient")
    fixed = _register(
        "fixed/gpt-judge",
        "helm.clients.openai_client.OpenAIClient",
        api_key="its-own-key-0123",
    )
    client = _client(tmp_path)
    for deployment in (simple, fixed):
        assert judge_client(deployment, client) is client._get_client(deployment)
        assert f"judge {deployment}: its client takes no key" in caplog.text


@pytest.mark.parametrize("missing", ["CLIENT_ID", "CLIENT_SECRET", "TOKEN_URL"])
def test_incomplete_oauth_variables(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Incomplete OAuth variables are named without the values of the others, also if another key is available."""
    monkeypatch.setenv("OPENAI_API_KEY", MAIN_KEY)
    _oauth(monkeypatch, server, **{missing: ""})
    with pytest.raises(InputError, match=f"set, but not GPT_JUDGE_{missing}") as error:
        check_credentials(JUDGE, {})
    assert not any(
        value in str(error.value) for value in (CLIENT_ID, CLIENT_SECRET, server.url)
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://tokens.example/token",
        "tokens.example",
        "http://127.0.0.1.example/t",
        "http://localhost:1@tokens.example/",
    ],
)
def test_a_secret_is_not_sent_in_the_clear(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """A client's secret is sent over http only to this machine."""
    _oauth(monkeypatch, server, TOKEN_URL=url)
    with pytest.raises(
        InputError, match="GPT_JUDGE_TOKEN_URL must be an https:// address"
    ):
        check_credentials(JUDGE, {})


def test_oauth(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One token serves all judges of a client, and an expired one is renewed, with 32 threads at once."""
    _oauth(monkeypatch, server, SCOPE="judge")
    client = judge_client(JUDGE, _client(tmp_path))
    with ThreadPoolExecutor(32) as pool:

        def ask_all(round_: int) -> None:
            results = list(
                pool.map(lambda i: _ask(client, prompt=f"{round_} {i}"), range(32))
            )
            assert [result.error for result in results] == [None] * 32

        ask_all(1)
        assert (len(server.asked), len(set(server.used))) == (1, 1)
        server.lost |= set(server.tokens)
        ask_all(2)
    assert (len(server.asked), len(set(server.used))) == (2, 2)
    assert _ask(judge_client(JUDGE, _client(tmp_path)), prompt="later").success
    assert len(server.asked) == 2
    assert not any(
        "oauth" in str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")
    )


def test_oauth_of_the_main_client(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """OAuth variables are the judge's own, else the host's, else those of the client's library."""
    _oauth(monkeypatch, server, "OPENAI")
    assert _ask(judge_client(CLAUDE, _client(tmp_path)), CLAUDE).success
    monkeypatch.setenv("CLAUDE_JUDGE_API_KEY", JUDGE_KEY)
    server.keys = {JUDGE_KEY}
    assert _ask(judge_client(CLAUDE, _client(tmp_path)), CLAUDE, "again").success
    assert server.used == [*server.tokens, JUDGE_KEY]


def test_a_token_that_ends_early_loses_no_request(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A token that expires early, because the server's clock is ahead, is renewed and the request is sent again."""
    _oauth(monkeypatch, server)
    client = judge_client(JUDGE, _client(tmp_path))
    for number in range(3):
        assert _ask(client, prompt=str(number)).success
        server.lost |= set(server.tokens)
    assert len(server.asked) == 3
    assert len(server.used) == 5


def test_tokens_that_are_never_accepted(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If tokens are never accepted, the failure is reported at once, and no more tokens are requested."""
    _oauth(monkeypatch, server)
    client = judge_client(JUDGE, _client(tmp_path))
    monkeypatch.setattr(
        server, "chat", lambda headers, *_: (401, {"error": headers["Authorization"]})
    )
    for _ in range(5):
        result = _ask(client)
        assert not result.success
        assert "GPT_JUDGE_CLIENT_ID was refused" in result.error
    assert len(server.asked) == 2


def test_a_token_server_that_refuses(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the token server refuses, the result is a failure instead of an exception, so that it is counted."""
    _oauth(monkeypatch, server, CLIENT_SECRET="wrong-secret-1234")
    result = _ask(judge_client(JUDGE, _client(tmp_path)))
    assert not result.success
    assert "invalid_client: wrong secret" in result.error
    assert "wrong-secret-1234" not in result.error


def test_what_other_requests_say_of_their_failure(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The errors of other requests, also of the evaluated model, are stored without keys."""
    apply_patches()
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # HELM's, between attempts
    credentials = {"somewhereApiKey": FILE_KEY, "elsewhereApiKey": HOST_KEY}
    result = _ask(_client(tmp_path, credentials))
    assert not result.success
    assert server.used[0] == FILE_KEY
    assert "Incorrect key: [redacted]" in result.error
    assert FILE_KEY not in result.error
    assert redact(HOST_KEY) == "[redacted]"


def test_a_judge_whose_package_is_missing(tmp_path: Path) -> None:
    """A judge whose package is missing ends in an error that says why."""
    deployment = _register("nowhere/gpt-judge", "no_such_package.clients.Client")
    with pytest.raises(
        InputError,
        match="its client cannot be loaded: No module named 'no_such_package'",
    ):
        judge_client(deployment, _client(tmp_path))


def test_what_a_judge_says_of_its_failure(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A wrong key of a judge ends in one call and in an error without the key."""
    monkeypatch.setenv("GPT_JUDGE_API_KEY", JUDGE_KEY)
    (judge,) = find_judges(JUDGE, _client(tmp_path))
    question = JudgeRequest(
        "hello",
        lambda text: {"grade": 1},
        max_tokens=9,
        temperature=0.1,
        top_p=0.9,
        seed=42,
    )
    error = judge.ask(question).error
    assert error is not None
    assert "GPT_JUDGE_API_KEY was refused: OpenAI error: Error code: 401" in error
    assert JUDGE_KEY[:8] not in error
    assert server.used == [JUDGE_KEY]
    server.keys = {JUDGE_KEY}
    assert judge.ask(question).verdict == {"grade": 1}
