"""Connections of HTTP/1.1 for our transport: each step of a request ends at a deadline, and no reply is left behind.

h11 reads and writes the protocol, as it does for httpx. httpx has no public way to limit the time of a whole reply, nor
to see what a server has sent after it.
"""

from __future__ import annotations

import base64
import math
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import h11
from urllib3.util import wait_for_read

from helm_longctx.redaction.origin import is_direct

LATE = "the server has not sent its whole answer in time"

_PIECE = 1 << 16
"""Bytes that are sent or read at once."""

_MOST_HEADERS = 100 << 10
"""Bytes that the headers of a reply can have."""

_LONGEST_IDLE = 5.0
"""Seconds for which an idle connection is kept. Servers close theirs after five seconds or more."""

_KEEP_ALIVE = 60
"""Seconds after which the system asks a silent peer whether it is still there. Networks forget silent connections."""

_ERRORS = {
    "connect": "ConnectError",
    "read": "ReadError",
    "write": "WriteError",
}
_TIMEOUTS = {
    "connect": "ConnectTimeout",
    "read": "ReadTimeout",
    "write": "WriteTimeout",
}
"""The steps of a request as httpx names their limits, and its errors for them."""

_SOCKS = {
    "socks4": "SOCKS4",
    "socks5": "SOCKS5",
    "socks5h": "SOCKS5",
}
"""Schemes of proxies, and their names in PySocks."""


@dataclass(frozen=True)
class Clock:
    """The time that a request may take.

    Args:
        http: httpx or httpx2, whose errors are raised.
        limits: seconds for each step (`connect`, `read`, `write`), counted from its last byte. None is no limit.
        deadline: the time on the monotonic clock at which the whole request ends.
    """

    http: ModuleType
    limits: Mapping[str, float | None]
    deadline: float

    def seconds(self, step: str) -> float | None:
        """Return the limit of the next step. It ends at the deadline at the latest. None is no limit.

        Raises:
            TimeoutException: of the HTTP library; the deadline is over.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self._error(_TIMEOUTS[step], LATE)
        limit = self.limits.get(step)
        shortest = left if limit is None else min(left, limit)
        return None if shortest == math.inf else shortest

    @contextmanager
    def step(self, step: str) -> Iterator[float | None]:
        """Give a block the limit of a step, and raise its errors as those of the HTTP library."""
        seconds = self.seconds(step)
        try:
            yield seconds
        except TimeoutError as error:
            is_late = time.monotonic() >= self.deadline
            raise self._error(
                _TIMEOUTS[step], LATE if is_late else str(error)
            ) from error
        except OSError as error:
            raise self._error(_ERRORS[step], str(error)) from error

    def _error(self, name: str, text: str) -> Exception:
        error: Exception = getattr(self.http, name)(text)
        return error


class Connection:
    """A connection to a server, for one request after the other."""

    def __init__(self, stream: Any, http: ModuleType):
        self._stream = stream
        self._http: Any = http
        self._protocol = h11.Connection(
            h11.CLIENT, max_incomplete_event_size=_MOST_HEADERS
        )
        self._idle_until = math.inf

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def ask(
        self,
        method: bytes,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        body: Iterable[bytes],
        clock: Clock,
    ) -> h11.Response:
        """Send a request, and return the head of the reply.

        Raises:
            HTTPError: of the HTTP library; there is no reply, or the deadline is over.
        """
        try:
            self._write(
                h11.Request(
                    method=method,
                    target=target,
                    headers=headers,
                ),
                clock,
            )
            for piece in body:
                self._write(h11.Data(data=piece), clock)
            self._write(h11.EndOfMessage(), clock)
        except h11.LocalProtocolError as error:
            raise self._http.LocalProtocolError(str(error)) from error
        except self._http.WriteError:
            # A server can refuse a request before it has read all of it. Its reply says why.
            pass
        while True:
            event = self._read_event(clock)
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise self._http.RemoteProtocolError("Server has sent no response.")

    def read_body(self, clock: Clock) -> Iterator[bytes]:
        """Yield the body of the reply as it arrives.

        Raises:
            HTTPError: of the HTTP library; the body is not whole, or the deadline is over.
        """
        while isinstance(event := self._read_event(clock), h11.Data):
            yield bytes(event.data)

    def finish(self) -> bool:
        """End a reply that has been read, and return whether the connection can be used for the next request.

        What a server sends after a reply would be the answer to the next request.
        """
        is_done = (
            self._protocol.our_state is h11.DONE
            and self._protocol.their_state is h11.DONE
        )
        if not is_done or self.has_surplus:
            return False
        self._protocol.start_next_cycle()
        self._idle_until = time.monotonic() + _LONGEST_IDLE
        return True

    @property
    def is_fresh(self) -> bool:
        """Whether an idle connection can be used: a server has neither closed it nor sent anything unasked."""
        if time.monotonic() > self._idle_until:
            return False
        if isinstance(self._stream, ssl.SSLSocket) and self._stream.pending():
            return False
        return not wait_for_read(self._stream, timeout=0)

    @property
    def has_surplus(self) -> bool:
        """Whether the server has sent more than the reply, or has closed the connection after it."""
        return self._protocol.trailing_data != (b"", False)

    def _write(self, event: h11.Event, clock: Clock) -> None:
        if isinstance(event, h11.Data):
            # A long body is not copied.
            parts = self._protocol.send_with_data_passthrough(event) or []
        else:
            parts = [self._protocol.send(event) or b""]
        for part in parts:
            rest = memoryview(part)
            while rest:
                with clock.step("write") as seconds:
                    self._stream.settimeout(seconds)
                    self._stream.sendall(rest[:_PIECE])
                rest = rest[_PIECE:]

    def _read_event(self, clock: Clock) -> Any:
        try:
            while (event := self._protocol.next_event()) is h11.NEED_DATA:
                with clock.step("read") as seconds:
                    self._stream.settimeout(seconds)
                    piece = self._stream.recv(_PIECE)
                if not piece and self._protocol.their_state is h11.SEND_RESPONSE:
                    text = "Server disconnected without sending a response."
                    raise self._http.RemoteProtocolError(text)
                self._protocol.receive_data(piece)
        except h11.RemoteProtocolError as error:
            raise self._http.RemoteProtocolError(str(error)) from error
        return event


@dataclass(frozen=True)
class _Proxy:
    """A proxy of the environment: its address as the HTTP library reads it."""

    url: Any

    @property
    def port(self) -> int:
        """The port. An address can leave it out."""
        standard = {"http": 80, "https": 443}
        return int(self.url.port or standard.get(self.url.scheme, 1080))


def find_proxy(http: Any, url: str) -> _Proxy | None:
    """Return the proxy that the environment names for an address, or None for a direct connection.

    Raises:
        ImportError: PySocks is missing.
        InvalidURL: of the HTTP library; the proxy's address is malformed.
        ValueError: the proxy is of an unknown kind.
    """
    if is_direct(url):
        return None
    from requests.utils import get_environ_proxies, select_proxy

    address = select_proxy(url, get_environ_proxies(url))
    if not address:
        return None
    proxy = _Proxy(http.URL(address if "://" in address else f"http://{address}"))
    if proxy.url.scheme in _SOCKS:
        if find_spec("socks") is None:
            raise ImportError("SOCKS needs the package PySocks")
    elif proxy.url.scheme not in ("http", "https"):
        raise ValueError(
            f"{proxy.url.scheme!r} is no kind of proxy; use http, https or socks5"
        )
    return proxy


def connect(url: Any, proxy: _Proxy | None, clock: Clock) -> Connection:
    """Open a connection to a server, through a proxy if there is one.

    Args:
        url: an address, as an object of the HTTP library.

    Raises:
        HTTPError: of the HTTP library; the server, or its proxy, cannot be reached.
    """
    host = url.raw_host.decode("ascii")
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    stream: Any
    if proxy is None:
        stream = _open_socket(host, port, clock)
    elif proxy.url.scheme in _SOCKS:
        stream = _open_socks(host, port, proxy, clock)
    else:
        stream = _open_tunnel(host, port, proxy, clock)
    if url.scheme == "https":
        stream = _encrypt(stream, host, clock)
    return Connection(stream, clock.http)


def _open_socket(host: str, port: int, clock: Clock) -> socket.socket:
    with clock.step("connect") as seconds:
        opened = socket.create_connection((host, port), timeout=seconds)
    _set_options(opened)
    return opened


def _set_options(opened: socket.socket) -> None:
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "darwin":
        idle = "TCP_KEEPALIVE"
    else:
        idle = "TCP_KEEPIDLE"
    for name in (idle, "TCP_KEEPINTVL"):
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), _KEEP_ALIVE)


def _open_socks(
    host: str,
    port: int,
    proxy: _Proxy,
    clock: Clock,
) -> Any:
    import socks

    http: Any = clock.http
    try:
        with clock.step("connect") as seconds:
            opened = socks.create_connection(
                (host, port),
                timeout=seconds,
                proxy_type=getattr(socks, _SOCKS[proxy.url.scheme]),
                proxy_addr=proxy.url.host,
                proxy_port=proxy.port,
                proxy_rdns=True,
                proxy_username=proxy.url.username or None,
                proxy_password=proxy.url.password or None,
            )
    except http.ConnectError as error:
        raise http.ProxyError(str(error)) from error
    _set_options(opened)
    return opened


def _open_tunnel(
    host: str,
    port: int,
    proxy: _Proxy,
    clock: Clock,
) -> Any:
    http: Any = clock.http
    stream: Any = _open_socket(proxy.url.host, proxy.port, clock)
    if proxy.url.scheme == "https":
        stream = _encrypt(stream, proxy.url.host, clock)
    name = f"[{host}]" if ":" in host else host
    target = f"{name}:{port}".encode()
    headers = [(b"Host", target), (b"Accept", b"*/*")]
    if proxy.url.username or proxy.url.password:
        login = f"{proxy.url.username}:{proxy.url.password}".encode()
        headers.append((b"Proxy-Authorization", b"Basic " + base64.b64encode(login)))
    connection = Connection(stream, clock.http)
    try:
        reply = connection.ask(b"CONNECT", target, headers, (), clock)
        if not 200 <= reply.status_code < 300:
            reason = bytes(reply.reason).decode("ascii", "replace")
            raise http.ProxyError(f"{reply.status_code} {reason}")
        if connection.has_surplus:
            raise http.ProxyError("the proxy has sent more than it was asked for")
        return stream
    except BaseException:
        stream.close()
        raise


def _encrypt(stream: Any, host: str, clock: Clock) -> Any:
    context = ssl_context(clock.http)
    try:
        with clock.step("connect") as seconds:
            stream.settimeout(seconds)
            if isinstance(stream, ssl.SSLSocket):
                # A socket of Python's cannot be encrypted twice, for the proxy and for the server.
                from urllib3.util.ssltransport import SSLTransport

                return SSLTransport(stream, context, host)
            return context.wrap_socket(stream, server_hostname=host)
    except BaseException:
        with suppress(OSError):
            stream.close()
        raise


_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables from which the libraries take the certificates that they trust."""


def ssl_context(http: ModuleType) -> ssl.SSLContext:
    """Return the certificates that an HTTP library trusts. They are read once, because that takes longer than a request."""
    return _make_ssl_context(http, *(os.environ.get(name) for name in _CERTIFICATES))


@cache
def _make_ssl_context(http: ModuleType, *paths: str | None) -> ssl.SSLContext:
    context: ssl.SSLContext = http.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
