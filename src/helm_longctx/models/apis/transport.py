"""The transport that sends keys and prompts for the official packages of the providers.

The packages follow redirects with all headers and the body, decode replies of any size, and limit only the time between
two bytes. All of them take an HTTP client of httpx (or httpx2, since openai 3 and anthropic 1), and both libraries take
a transport. Ours sends nothing to another server, limits the decoded bytes and the time of a whole reply, asks proxies
only where they cannot read, and keeps no connection on which a server has sent more than it was asked for.

No module of ours imports the libraries by name: a client accepts only objects of its own library, and an environment
can have only one of them.
"""

from __future__ import annotations

import importlib
import math
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any
from weakref import WeakSet

from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.apis.connections import (
    LATE,
    Clock,
    Connection,
    connect,
    find_proxy,
)
from helm_longctx.redaction.origin import check_origin
from helm_longctx.run_settings import MAX_REPLY, MEBIBYTE, settings_in_use

NO_KEY = "helm-longctx has no key"
"""The key that the packages get for a `base_url` without a key, because they need one. No request carries it."""

_KEY_HEADERS = (b"authorization", b"x-api-key")

_LIBRARIES = ("httpx", "httpx2")

_ORIGIN = "helm_longctx.origin"
_DEADLINE = "helm_longctx.deadline"
"""Names in the extensions of a request. The HTTP library copies them to the requests that follow a redirect, and our
polls of NVCF do, too."""

_PIECE = 1 << 16
"""Bytes that are decoded at once."""

_COMPRESSED_PIECE = 1 << 13
"""Bytes of a compressed body that are read at once. They can become a thousand times as many."""

_GZIP = zlib.MAX_WBITS | 16
"""The format that zlib decodes: gzip."""

Header = tuple[bytes, bytes]
"""The name and the value of a header."""


@dataclass
class Exchange:
    """A request that a package's client makes, and what comes of it.

    Attributes:
        outcome: the response or the error that the transport gives at once. None if the request is to be sent.
        url: the address of the request, once it has reached the transport.
        headers: its headers.
        timeout: its limits for each step, in seconds.
    """

    outcome: Any = None
    url: Any = None
    headers: list[Header] | None = None
    timeout: Any = None


_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def use_exchange(exchange: Exchange) -> Iterator[None]:
    """Note in an exchange what a package sends in the block, or give its outcome."""
    token = _exchange.set(exchange)
    try:
        yield
    finally:
        _exchange.reset(token)


_guarded: WeakSet[Any] = WeakSet()
"""The clients of packages that `guard_library` has made."""


class Transport:
    """Sends the requests of an HTTP client. Several threads may use it.

    It has the methods of `BaseTransport`, the interface of httpx and httpx2 for transports.

    Args:
        http: httpx or httpx2.
        least_seconds: time that a whole reply may take at least. Otherwise it has the time for which the server may
            stay silent.
        is_bulk: whether replies are files that are read line by line. Their size and time are not limited, because
            their reader limits the lines (`batches.split_lines`).
        unsent_keys: keys that the package would send, and no request may carry.
        key_header: the header that carries the key. Empty for the package's own one.

    Raises:
        InputError: the setting of the size has a wrong value.
    """

    def __init__(
        self,
        http: ModuleType,
        least_seconds: float = 0.0,
        is_bulk: bool = False,
        unsent_keys: Iterable[str] = (),
        key_header: str = "",
    ):
        self._http: Any = http
        self._most_bytes = math.inf if is_bulk else settings_in_use().max_reply_bytes
        if is_bulk:
            self._least_seconds = math.inf
        else:
            self._least_seconds = least_seconds
        self._unsent_keys = tuple(key.encode() for key in (NO_KEY, *unsent_keys))
        self._key_header = key_header.encode()
        self._idle: defaultdict[str, list[Connection]] = defaultdict(list)

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        for connections in self._idle.values():
            while connections:
                connections.pop().close()

    def handle_request(self, request: Any) -> Any:
        """Send a request, and return its reply, whose body has not been read.

        Raises:
            FailureError: the request comes from a redirect to another origin, or its reply has an unknown encoding.
            HTTPError: of the HTTP library.
        """
        exchange = _exchange.get()
        if exchange is not None:
            if isinstance(exchange.outcome, Exception):
                raise exchange.outcome
            if exchange.outcome is not None:
                return exchange.outcome
            if exchange.headers is None:
                exchange.url = request.url
                exchange.headers = list(request.headers.raw)
                exchange.timeout = request.extensions.get("timeout", {})
        url = str(request.url)
        check_origin(request.extensions.setdefault(_ORIGIN, url), url)
        headers = self._choose_headers(request.headers.raw)
        clock = self._start_clock(request)
        lease = self._lease(request.url, url, clock)
        try:
            target = request.url.raw_path
            method = request.method.encode("ascii")
            head = lease.connection.ask(method, target, headers, request.stream, clock)
            encoding, kept_headers = _split_encoding(head.headers.raw_items())
            if encoding not in ("identity", "gzip"):
                text = f"the server's answer has the encoding {encoding!r} and not gzip"
                raise FailureError(Failure.MALFORMED, text)
        except BaseException:
            lease.end()
            raise
        pieces = self._read_body(lease, encoding == "gzip", clock)
        return self._http.Response(
            head.status_code,
            headers=kept_headers,
            stream=_stream_class(self._http)(pieces, lease.end),
            extensions={
                "http_version": b"HTTP/" + bytes(head.http_version),
                "reason_phrase": bytes(head.reason),
            },
        )

    def _choose_headers(self, headers: Iterable[Header]) -> list[Header]:
        """Return the headers that are sent. The library's own objects take several times as long to change."""
        chosen = []
        for name, value in headers:
            kind = name.lower()
            if kind == b"accept-encoding":
                continue
            if kind not in _KEY_HEADERS:
                chosen.append((name, value))
            elif value.endswith(self._unsent_keys):
                continue
            elif self._key_header:
                chosen.append((self._key_header, value.removeprefix(b"Bearer ")))
            else:
                chosen.append((name, value))
        chosen.append((b"Accept-Encoding", b"gzip"))
        return chosen

    def _start_clock(self, request: Any) -> Clock:
        limits = request.extensions.get("timeout", {})
        seconds = max(limits.get("read") or 0.0, self._least_seconds) or math.inf
        deadline = request.extensions.setdefault(_DEADLINE, time.monotonic() + seconds)
        return Clock(
            http=self._http,
            limits=limits,
            deadline=deadline,
        )

    def _lease(
        self,
        url: Any,
        address: str,
        clock: Clock,
    ) -> _Lease:
        """Return a connection that no other request uses: the one that was used last, or a new one."""
        idle = self._idle[f"{url.scheme}://{url.netloc.decode('ascii')}"]
        while (connection := _take_last(idle)) is not None:
            if connection.is_fresh:
                return _Lease(connection, idle)
            connection.close()
        return _Lease(connect(url, find_proxy(self._http, address), clock), idle)

    def _read_body(
        self,
        lease: _Lease,
        is_gzip: bool,
        clock: Clock,
    ) -> Iterator[bytes]:
        size = 0
        body = lease.connection.read_body(clock)
        for piece in _unzip(body, self._http) if is_gzip else body:
            size += len(piece)
            check_size(size, self._most_bytes)
            clock.seconds("read")  # what has arrived can take long to decode
            yield piece
        lease.end(is_whole=True)


def _split_encoding(headers: Iterable[Header]) -> tuple[str, list[Header]]:
    """Return the encoding of a reply, and its other headers."""
    encodings = []
    others = []
    for name, value in headers:
        if name.lower() == b"content-encoding":
            encodings.append(value.decode("latin-1").lower())
        else:
            others.append((name, value))
    return ", ".join(encodings) or "identity", others


def _take_last(idle: list[Connection]) -> Connection | None:
    """Return the connection that was used last, or None if there is none. Another thread can be faster."""
    try:
        return idle.pop()
    except IndexError:
        return None


class _Lease:
    """A connection while one request uses it."""

    def __init__(self, connection: Connection, idle: list[Connection]):
        self.connection = connection
        self._idle: list[Connection] | None = idle

    def end(self, is_whole: bool = False) -> None:
        """Give the connection back after a reply that was read as a whole, and close it after any other.

        Only the first call has an effect.
        """
        idle = self._idle
        self._idle = None
        if idle is None:
            return
        if is_whole and self.connection.finish():
            idle.append(self.connection)
        else:
            self.connection.close()


@cache
def _stream_class(http: Any) -> Any:
    """Return the class of bodies, a subclass of the library's own."""

    class Body(http.SyncByteStream):
        def __init__(self, pieces: Iterator[bytes], close: Callable[[], None]):
            self._pieces = pieces
            self._close = close

        def __iter__(self) -> Iterator[bytes]:
            return self._pieces

        def close(self) -> None:
            self._close()

    return Body


def _unzip(pieces: Iterable[bytes], http: Any) -> Iterator[bytes]:
    """Decode in small pieces, because a piece can become a thousand times as long.

    A reply can have several members (RFC 1952). What follows a member and is none, such as zero bytes, is ignored, as
    other clients do.
    """
    decoder = zlib.decompressobj(_GZIP)
    is_first = True
    try:
        for rest in pieces:
            while rest:
                if decoder.eof:
                    decoder = zlib.decompressobj(_GZIP)
                    is_first = False
                yield decoder.decompress(rest, _PIECE)
                if decoder.eof:
                    rest = decoder.unused_data
                else:
                    rest = decoder.unconsumed_tail
        yield decoder.flush()
    except zlib.error as error:
        if is_first:
            raise http.DecodingError(str(error)) from error


def check_size(size: float, most: float) -> None:
    """Raise a `FailureError` if the part of a reply that has arrived has more than `most` bytes after decompression."""
    if size > most:
        limit = f"{most / MEBIBYTE:g} MiB, the limit in {MAX_REPLY}"
        raise FailureError(
            Failure.MALFORMED, f"the server's answer is larger than {limit}"
        )


def http_library(package: ModuleType) -> Any:
    """Return the HTTP library of a provider's package (`openai`, `anthropic`, `together`, …), or None if it has another.

    The packages name the class of their HTTP clients.
    """
    for base in getattr(package, "DefaultHttpxClient", object).__mro__:
        name = base.__module__.partition(".")[0]
        if name in _LIBRARIES and base.__name__ == "Client":
            return importlib.import_module(name)
    return None


def package_of(library: object) -> ModuleType:
    """Return the package of a provider's client."""
    return importlib.import_module(type(library).__module__.partition(".")[0])


def make_http_client(http: Any, transport: Any) -> Any:
    """Return an HTTP client that sends by a transport. It follows redirects, and the transport checks them."""
    return http.Client(
        transport=transport,
        follow_redirects=True,
        trust_env=False,
    )


def guard_library(library: Any) -> Any:
    """Return a client of a provider's package that sends by our transport. Other objects are returned as they are.

    Raises:
        InputError: see `Transport`.
    """
    if not hasattr(library, "with_options") or library in _guarded:
        return library
    http = http_library(package_of(library))
    if http is None:
        return library
    # A number is the timeout of a deployment. It limits only the silence of the server.
    is_own = isinstance(getattr(library, "timeout", None), int | float | None)
    transport = Transport(http, settings_in_use().request_timeout if is_own else 0.0)
    guarded = library.with_options(http_client=make_http_client(http, transport))
    _guarded.add(guarded)
    return guarded


class ArrivingBody:
    """The body of a reply that `requests` gets as it arrives. It would else wait for full pieces, however long they take.

    Everything except `stream` is taken from `raw`, urllib3's response.
    """

    def __init__(self, raw: Any):
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(
        self,
        amt: int | None = None,
        decode_content: bool | None = None,
    ) -> Iterator[bytes]:
        """Yield the body in the pieces in which it arrives."""
        while piece := self._raw.read1(
            _COMPRESSED_PIECE, decode_content=decode_content
        ):
            yield piece


class LimitedBody(ArrivingBody):
    """The body of a reply, which `requests` reads into memory as a whole: with a limit of its size and its time.

    The time starts when the object is made.
    """

    def __init__(self, raw: Any):
        super().__init__(raw)
        settings = settings_in_use()
        self._most = settings.max_reply_bytes
        self._end = time.monotonic() + settings.request_timeout

    def stream(
        self,
        amt: int | None = None,
        decode_content: bool | None = None,
    ) -> Iterator[bytes]:
        """Yield the body in the pieces in which it arrives; raise a failure if it is too large or takes too long."""
        size = 0
        for piece in super().stream(amt, decode_content):
            size += len(piece)
            check_size(size, self._most)
            if time.monotonic() > self._end:
                raise FailureError(Failure.TEMPORARY, LATE)
            yield piece
