"""Proxies in the environment, which may not read what is sent, and addresses and certificates that are wrong."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import openai
import pytest
import requests
from helm.common.cache import BlackHoleCacheConfig

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm.patches import apply_patches
from helm_longctx.models.apis import AnthropicClient, OpenAIClient
from helm_longctx.models.apis.availability import list_models
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.sending import try_once
from helm_longctx.models.endpoints.probe import probe
from helm_longctx.models.results import failure_of
from tests.models.apis.making import KINDS, REQUEST
from tests.support.servers import hostile
from tests.support.servers.hostile import WHOLE, Hostile, attack
from tests.support.servers.threads import serve_in_thread

KEY = "a-secret-key-0123456789"
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
HTML = b"<html>proxy</html>"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    """A server that all variables name as the proxy. It answers itself, and keeps what it reads."""
    with attack(hostile.send(HTML, 403)) as running:
        set_proxy(monkeypatch, running.address)
        yield running


def set_proxy(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name in VARIABLES[:3]:
        monkeypatch.setenv(name, address)
        monkeypatch.setenv(name.lower(), address)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def make(kind: str, address: str) -> ProviderClient:
    if kind == "anthropic":
        return AnthropicClient(BlackHoleCacheConfig(), KEY, address)
    return OpenAIClient(BlackHoleCacheConfig(), KEY, f"{address}/v1/", form=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_this_machine_needs_no_proxy(kind: str, proxy: Hostile) -> None:
    """A server on the loopback interface gets the request itself, and the proxy of the environment nothing."""
    for host in ("127.0.0.1", "localhost"):
        with attack(hostile.send(WHOLE[kind])) as server:
            result = make(kind, server.address.replace("127.0.0.1", host)).make_request(
                REQUEST
            )
        assert [completion.text for completion in result.completions] == ["Yes"], (
            result.error
        )
        assert KEY in server.seen[0]
    assert proxy.seen == []


def test_lists_probes_and_other_clients_need_no_proxy(proxy: Hostile) -> None:
    """Lists of models, `models add`, HELM's clients on OpenAI's package, and its clients on `requests` use no proxy."""
    apply_patches()
    with attack(hostile.send({"data": [{"id": "m"}], **WHOLE["chat"]})) as server:
        bare = openai.OpenAI(api_key=KEY, base_url=f"{server.address}/v1/")
        for library in (bare, make("chat", server.address).bulk_library()):
            assert [
                model.name for model in list_models(SimpleNamespace(client=library))
            ] == ["m"]
        assert probe(server.address, model="m").routes
        assert requests.post(server.address, json={}, headers={"X-Key": KEY}).json()
    assert proxy.seen == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_reads_nothing(kind: str, proxy: Hostile) -> None:
    """Over http, other servers are asked directly. Over https, the proxy gets the name of the server and nothing else."""
    plain = make(kind, "http://model.invalid").make_request(REQUEST)
    assert failure_of(plain) is Failure.UNREACHABLE, plain.error
    assert proxy.seen == []
    secret = make(kind, "https://model.invalid").make_request(REQUEST)
    assert not secret.success
    assert [seen.split("\n")[0] for seen in proxy.seen] == ["CONNECT model.invalid:443"]
    assert KEY not in proxy.seen[0]
    assert REQUEST.prompt not in proxy.seen[0]


@pytest.mark.parametrize("address", ["ftp://h", "http://[::1", "http://²"])
def test_proxies_that_cannot_be_used(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of another kind, or a malformed one, is one line of error over https, and no matter on this machine."""
    set_proxy(monkeypatch, address)
    with attack(hostile.send(WHOLE["chat"])) as server:
        assert make("chat", server.address).make_request(REQUEST).success
    with pytest.raises(
        InputError,
        match=r"a proxy of the environment \(HTTPS_PROXY, ALL_PROXY\) cannot be used: ",
    ) as raised:
        probe("https://model.invalid", model="m")
    assert "\n" not in str(raised.value)


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[str]:
    """The address of a server with a certificate that nobody trusts."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number()
    )
    signed = (
        builder.not_valid_before(now - timedelta(1))
        .not_valid_after(now + timedelta(1))
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = tmp_path / "server.pem"
    encoding = serialization.Encoding.PEM
    file.write_bytes(key.private_bytes(encoding, *form) + signed.public_bytes(encoding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    http = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    http.socket = context.wrap_socket(
        http.socket, server_side=True, do_handshake_on_connect=False
    )
    http.handle_error = lambda *arguments: None  # type: ignore[method-assign]
    with serve_in_thread(http):
        yield f"https://localhost:{http.server_port}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_certificate(kind: str, impostor: str) -> None:
    """The error of a request names the certificate, with or without the runner's own words, and only once."""
    client = make(kind, impostor)
    for result in (
        client.make_request(REQUEST),
        try_once(client.make_request, replace(REQUEST)).result,
    ):
        assert failure_of(result) is Failure.UNREACHABLE
        assert str(result.error).lower().count("certificate verify failed") == 1, (
            result.error
        )
