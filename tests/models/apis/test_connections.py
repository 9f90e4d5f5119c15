"""Our connections, against servers and proxies that write whatever they like on a real socket."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from helm.common.cache import BlackHoleCacheConfig

from helm_longctx.failures import Failure
from helm_longctx.models.apis import OpenAIClient
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.connections import LATE, Clock, connect
from helm_longctx.models.results import failure_of
from helm_longctx.run_settings import TIMEOUT
from tests.models.apis.making import REQUEST
from tests.support.http import HTTP
from tests.support.servers.hostile import WHOLE

KEY = "sk-a-secret-key-0123456789"
BODY = json.dumps(WHOLE["chat"]).encode()
OTHER = json.dumps(WHOLE["chat"]).replace("Yes", "No").encode()
"""A good reply, and one that nobody has asked for."""

Talk = Callable[["Peer", socket.socket], None]


@dataclass
class Peer:
    """A server that talks on plain sockets: its port, and what each connection has sent to it."""

    port: int
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def read(self, connection: socket.socket) -> bytes:
        """Return the next request with its body; empty if the client has closed the connection."""
        request = b""
        while b"\r\n\r\n" not in request:
            piece = connection.recv(1 << 16)
            if not piece:
                return b""
            request += piece
        head, _, body = request.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        lengths = [line for line in lines if line.startswith(b"content-length:")]
        length = int(lengths[0].partition(b":")[2]) if lengths else 0
        while len(body) < length:
            body += connection.recv(1 << 16)
        self.requests.append(head + b"\r\n\r\n" + body)
        return self.requests[-1]


@contextmanager
def listen(talk: Talk) -> Iterator[Peer]:
    """Call `talk` for each connection, in a thread of its own, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    peer = Peer(listener.getsockname()[1])
    opened: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            talk(peer, connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                opened.append(connection)
                peer.connections += 1
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield peer
    finally:
        for closing in (listener, *opened):
            with suppress(OSError):
                closing.shutdown(socket.SHUT_RDWR)
            closing.close()


def make(address: str, **arguments: object) -> ProviderClient:
    return OpenAIClient(BlackHoleCacheConfig(), KEY, f"{address}/v1", **arguments)


def whole(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def chunked(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


def answers_of(client: ProviderClient, requests: int) -> list[str]:
    """Return the texts of answers to different prompts, with a pause between them."""
    texts = []
    for number in range(requests):
        result = client.make_request(replace(REQUEST, prompt=f"prompt {number}"))
        assert result.success, result.error
        texts.append(result.completions[0].text)
        time.sleep(0.02)
    return texts


FORMS = {"whole": whole, "chunked": chunked}


@pytest.mark.parametrize("surplus", ["reply", "half", "line", "empty chunk"])
@pytest.mark.parametrize("form", FORMS)
def test_surplus_with_a_reply(form: str, surplus: str) -> None:
    """What comes with a reply and after its end is not read as the next answer, whatever is sent later."""
    second = FORMS[form](OTHER)
    extras = {
        "reply": (second, b""),
        "half": (second[:60], second[60:]),
        "line": (b"\r\n", b""),
        "empty chunk": (b"0\r\n\r\n", second),
    }
    extra, rest = extras[surplus]

    def talk(peer: Peer, connection: socket.socket) -> None:
        peer.read(connection)
        connection.sendall(FORMS[form](BODY) + extra)
        while peer.read(connection):
            connection.sendall(rest or second)

    with listen(talk) as peer:
        assert answers_of(make(peer.address), 3) == ["Yes"] * 3
        assert peer.connections == 3


@pytest.mark.parametrize("form", FORMS)
def test_surplus_on_an_idle_connection(form: str) -> None:
    """A reply that comes after the end of another one, while nothing is asked, closes the connection."""

    def talk(peer: Peer, connection: socket.socket) -> None:
        peer.read(connection)
        connection.sendall(FORMS[form](BODY))
        time.sleep(0.005)
        connection.sendall(FORMS[form](OTHER))
        peer.read(connection)

    with listen(talk) as peer:
        assert answers_of(make(peer.address), 3) == ["Yes"] * 3
        assert peer.connections == 3


def test_a_connection_is_used_again() -> None:
    """Requests one after the other share a connection, also from several threads, until the server closes it."""
    last = 5

    def talk(peer: Peer, connection: socket.socket) -> None:
        for _ in range(last):
            if not peer.read(connection):
                break
            connection.sendall(whole(BODY))

    with listen(talk) as peer:
        client = make(peer.address)
        for _ in range(last):
            thread = threading.Thread(target=answers_of, args=(client, 1))
            thread.start()
            thread.join()
        assert (peer.connections, len(peer.requests)) == (1, last)
        assert answers_of(client, 2) == ["Yes"] * 2
        assert (peer.connections, len(peer.requests)) == (2, last + 2)


def test_requests_at_once_have_connections_of_their_own() -> None:
    """Replies to requests of several threads are not confused."""

    def talk(peer: Peer, connection: socket.socket) -> None:
        while request := peer.read(connection):
            prompt = json.loads(request.partition(b"\r\n\r\n")[2])["messages"][0][
                "content"
            ]
            connection.sendall(whole(BODY.replace(b"Yes", prompt.encode())))

    with listen(talk) as peer:
        client = make(peer.address)
        wrong: list[str] = []

        def ask(thread: int) -> None:
            for number in range(20):
                prompt = f"thread {thread} prompt {number}"
                result = client.make_request(replace(REQUEST, prompt=prompt))
                if [output.text for output in result.completions] != [prompt]:
                    wrong.append(f"{prompt}: {result}")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert peer.connections <= len(threads)


def test_a_server_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending has the time of the request, too."""
    monkeypatch.setenv(TIMEOUT, "0.5")
    ended = threading.Event()
    with listen(lambda peer, connection: ended.wait() and None) as peer:
        start = time.monotonic()
        result = make(peer.address).make_request(
            replace(REQUEST, prompt="long " * 4_000_000)
        )
        seconds = time.monotonic() - start
        ended.set()
    assert failure_of(result) is Failure.TEMPORARY, result.error
    assert seconds < 10


def test_a_server_that_reads_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose bytes are taken one after the other ends, although no pause is long."""
    monkeypatch.setenv(TIMEOUT, "1")
    closed = threading.Event()

    def talk(peer: Peer, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        while not closed.wait(0.05):
            connection.recv(1 << 14)

    with listen(talk) as peer:
        result = make(peer.address).make_request(
            replace(REQUEST, prompt="long " * 4_000_000)
        )
        closed.set()
    assert failure_of(result) is Failure.TEMPORARY, result.error


def test_a_step_ends_at_the_deadline() -> None:
    """A server may be silent for a minute, but the request has less time left."""
    ended = threading.Event()
    with listen(lambda peer, connection: ended.wait() and None) as peer:
        clock = Clock(http=HTTP, limits={"read": 60.0}, deadline=time.monotonic() + 0.3)
        connection = connect(HTTP.URL(peer.address), None, clock)
        with pytest.raises(HTTP.ReadTimeout, match=LATE):
            connection.ask(b"GET", b"/", [(b"Host", b"m")], (), clock)
        with pytest.raises(HTTP.ConnectTimeout, match=LATE):
            connect(HTTP.URL(peer.address), None, clock)
        connection.close()
        ended.set()


def test_a_refusal_before_the_whole_request_was_read() -> None:
    """The reply of a server that closes the connection early says why, although the request could not be sent."""
    error = (
        b'{"error": {"message": "maximum context length is 10 tokens", "code": null}}'
    )
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"

    def talk(peer: Peer, connection: socket.socket) -> None:
        connection.recv(1 << 10)
        connection.sendall(
            head + f"Content-Length: {len(error)}\r\n\r\n".encode() + error
        )
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass

    with listen(talk) as peer:
        result = make(peer.address).make_request(
            replace(REQUEST, prompt="long " * 400_000)
        )
    assert failure_of(result) is Failure.TOO_LONG, result.error


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5",
        whole(BODY)[:-3],
        chunked(BODY)[:-7],
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
        b"no HTTP at all\r\n\r\n",
    ],
)
def test_replies_that_end_early_or_are_no_http(reply: bytes) -> None:
    """A reply that is not whole is no answer, and the next request has a connection of its own."""

    def talk(peer: Peer, connection: socket.socket) -> None:
        if peer.read(connection):
            connection.sendall(reply if len(peer.requests) == 1 else whole(BODY))

    with listen(talk) as peer:
        client = make(peer.address)
        failure = failure_of(client.make_request(REQUEST))
        assert failure is not None
        assert failure.is_retriable
        assert answers_of(client, 1) == ["Yes"]


def test_a_long_request_is_not_copied() -> None:
    """While a body is sent, the connection holds no further copy of it."""

    def talk(peer: Peer, connection: socket.socket) -> None:
        while piece := connection.recv(1 << 16):
            if piece.endswith(b"END"):
                connection.sendall(whole(b"{}"))

    with listen(talk) as peer:
        clock = Clock(http=HTTP, limits={}, deadline=time.monotonic() + 60)
        connection = connect(HTTP.URL(peer.address), None, clock)
        body = b"x" * (1 << 25) + b"END"
        headers = [(b"Host", b"m"), (b"Content-Length", str(len(body)).encode())]
        tracemalloc.start()
        try:
            reply = connection.ask(b"POST", b"/", headers, [body], clock)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        connection.close()
    assert reply.status_code == 200
    assert peak < 1 << 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of `localhost`, in one file."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.DNSName("model.test")]
    )
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number()
    )
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(
        now + timedelta(1)
    )
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    signed = builder.sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(encoding, form, serialization.NoEncryption())
    path = tmp_path_factory.mktemp("certificates") / "server.pem"
    path.write_bytes(secret + signed.public_bytes(encoding))
    return path


def encrypt(connection: socket.socket, certificate: Path) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context.wrap_socket(connection, server_side=True)


def relay(first: socket.socket, second: socket.socket) -> None:
    """Copy what two sockets send to each other until one of them ends."""

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                target.sendall(piece)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=copy, args=(second, first), daemon=True).start()
    copy(first, second)


PROXIES = ("http", "https", "socks5")


@pytest.mark.parametrize("kind", PROXIES)
def test_proxies_open_a_tunnel(
    kind: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server behind a proxy answers over https. The proxy learns its name and the login, and reads nothing else."""
    heard: list[bytes] = []

    def answer(peer: Peer, connection: socket.socket) -> None:
        with encrypt(connection, certificate) as secret:
            while peer.read(secret):
                secret.sendall(whole(BODY))

    def open_tunnel(peer: Peer, connection: socket.socket) -> None:
        if kind == "socks5":
            heard.append(read_socks(connection))
        else:
            connection = (
                encrypt(connection, certificate) if kind == "https" else connection
            )
            heard.append(peer.read(connection))
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", server.port)) as behind:
            relay(connection, behind)

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with listen(answer) as server, listen(open_tunnel) as proxy:
        address = f"{kind}://me:secret@localhost:{proxy.port}"
        monkeypatch.setenv("HTTPS_PROXY", address)
        monkeypatch.setenv("https_proxy", address)
        client = make("https://model.test")
        assert answers_of(client, 2) == ["Yes"] * 2
        assert len(server.requests) == 2
        assert KEY.encode() in server.requests[0]
        assert (server.connections, proxy.connections) == (1, 1)
    assert len(heard) == 1
    assert b"model.test" in heard[0]
    assert (
        b"Basic bWU6c2VjcmV0" if kind != "socks5" else b"\x02me\x06secret"
    ) in heard[0]
    assert KEY.encode() not in heard[0]


def read_socks(connection: socket.socket) -> bytes:
    """Accept a login and a name in the protocol of SOCKS 5 (RFC 1928 and 1929), and return what was sent."""
    heard = connection.recv(1 << 10)
    connection.sendall(b"\x05\x02")
    heard += connection.recv(1 << 10)
    connection.sendall(b"\x01\x00")
    heard += connection.recv(1 << 10)
    connection.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
    return heard


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
            "407",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "more than it was asked for"),
        (b"", "disconnected"),
    ],
)
def test_proxies_that_open_no_tunnel(
    reply: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure says what the proxy has answered, and the server is never asked without it."""

    def refuse(peer: Peer, connection: socket.socket) -> None:
        peer.read(connection)
        connection.sendall(reply)

    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with listen(refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        monkeypatch.setenv("https_proxy", proxy.address)
        result = make("https://model.test").make_request(REQUEST)
    assert not result.success
    assert words in str(result.error)
    assert proxy.requests[0].startswith(b"CONNECT model.test:443 HTTP/1.1\r\n")
    assert KEY.encode() not in b"".join(proxy.requests)


def test_no_proxy_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in NO_PROXY is asked directly."""
    heard: list[bytes] = []
    with listen(lambda peer, connection: heard.append(peer.read(connection))) as proxy:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.address)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "other.test,model.invalid")
        result = make("https://model.invalid").make_request(REQUEST)
    assert failure_of(result) is Failure.UNREACHABLE, result.error
    assert heard == []
