"""Guards the HTTP clients that send keys and prompts: no other server gets them, and no reply exceeds its limits.

The packages of the providers follow redirects with all headers and the body, decode replies of any size, and limit only
the time between two bytes. They use httpx, or httpx2 since openai 3 and anthropic 1. Both have the same names, but a
client accepts only objects of its own library, and an environment can have only one of them. So no module of ours
imports them by name.
"""

from __future__ import annotations

import importlib
import math
import os
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from helm_longctx.environment import MAX_REPLY, MEBIBYTE, max_reply, request_timeout
from helm_longctx.failures import Failure, FailureError
from helm_longctx.redaction.origin import check_origin, is_direct

LATE = "the server has not sent its whole answer in time"

_LIBRARIES = {"httpx": "httpcore", "httpx2": "httpcore2"}
"""The libraries, and the library below each of them that opens connections."""

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables from which the libraries take the certificates that they trust."""

_ORIGIN = "helm_longctx.origin"
_DEADLINE = "helm_longctx.deadline"
"""Names in the extensions of a request. The HTTP library copies them to the requests that follow a redirect, and our
polls of NVCF do, too."""

_PIECE = 1 << 16
"""Bytes that are sent or decoded at once."""

_COMPRESSED_PIECE = 1 << 13
"""Bytes of a compressed body that are read at once. They can become a thousand times as many."""

_GZIP = zlib.MAX_WBITS | 16
"""The format that zlib decodes: gzip."""

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""The time on the monotonic clock at which the request of this thread ends."""


def http_library(client: type) -> ModuleType | None:
    """Return the HTTP library of a class of HTTP clients; None if it is not one of the two."""
    for base in client.__mro__:
        name = base.__module__.partition(".")[0]
        if name in _LIBRARIES and base.__name__ == "Client":
            return importlib.import_module(name)
    return None


def connection_library(library: ModuleType) -> ModuleType:
    """Return httpcore or httpcore2, which opens the connections of an HTTP library."""
    return importlib.import_module(_LIBRARIES[library.__name__])


def response_type(library: Any) -> Any:
    """Return the class of raw responses, for `cast_to` of the client of a provider's package."""
    http = http_library(type(library._client))
    assert http is not None
    return http.Response


def ssl_context(library: ModuleType) -> ssl.SSLContext:
    """Return the certificates that an HTTP library trusts. They are read once, which takes longer than a request."""
    return _make_ssl_context(library, *(os.environ.get(name) for name in _CERTIFICATES))


@cache
def _make_ssl_context(library: ModuleType, *paths: str | None) -> ssl.SSLContext:
    context: ssl.SSLContext = library.create_ssl_context()
    return context


@cache
def derive(ours: type, theirs: type) -> Any:
    """Return a subclass of both classes. The libraries accept streams and authentication only of their own classes."""
    return type(ours.__name__, (ours, theirs), {})


def guard(client: Any, least_seconds: float = 0.0, is_bulk: bool = False) -> Any:
    """Limit the requests of an HTTP client, and return it. A client that is guarded stays as it is.

    A redirect to another origin is a failure that names both. A reply has at most the bytes of `max_reply` after
    decoding, and arrives within the time for which the server may stay silent.

    Args:
        client: a client of httpx or httpx2.
        least_seconds: time that a whole reply may take at least.
        is_bulk: whether replies are files that are read line by line. Their size and time are not limited, because
            their reader limits the lines (`batches.split_lines`).

    Raises:
        InputError: the setting of the size has a wrong value.
    """
    if any(
        isinstance(getattr(hook, "__self__", None), _Guard)
        for hook in client.event_hooks["request"]
    ):
        return client
    http: Any = http_library(type(client))
    # The library takes the proxies of the environment for all addresses.
    client._mounts = {_Direct(): None, **client._mounts}
    pools = [getattr(each, "_pool", None) for each in (client._transport, *client._mounts.values())]
    most, seconds = (math.inf, math.inf) if is_bulk else (max_reply(), least_seconds)
    rules = _Guard(http, most, seconds, [pool for pool in pools if pool])
    hooks = client.event_hooks
    client.event_hooks = {
        "request": [*hooks["request"], rules.begin],
        "response": [*hooks["response"], rules.receive],
    }
    # The library has no option for the network, and its own limits count from the last byte.
    for pool in filter(None, pools):
        pool._network_backend = _TimedBackend(pool._network_backend, connection_library(http))
    return client


def guard_library(library: Any) -> None:
    """Guard the client of a provider's package (`openai`, `anthropic`, `together`, …). Other objects stay as they are.

    Raises:
        InputError: see `guard`.
    """
    client = getattr(library, "_client", None)
    if http_library(type(client)) is not None:
        # A number is the timeout of a deployment, which limits only the silence of the server.
        is_own = isinstance(getattr(library, "timeout", None), int | float | None)
        guard(client, request_timeout() if is_own else 0.0)


@dataclass(frozen=True)
class _Guard:
    """The hooks of an HTTP client: `most` are the bytes of a decoded reply, `pools` the client's connections."""

    http: Any
    most: float
    least_seconds: float
    pools: Sequence[Any]

    def begin(self, request: Any) -> None:
        """Check the address, which may come from a redirect, and start the time of the first request."""
        check_origin(request.extensions.setdefault(_ORIGIN, str(request.url)), str(request.url))
        # More than a reply that has arrived on an idle connection would be the answer to the next request.
        for connection in [
            each for pool in self.pools for each in list(getattr(pool, "_connections", ()))
        ]:
            state = getattr(getattr(connection, "_connection", None), "_h11_state", None)
            if state is not None and connection.is_idle() and state.trailing_data[0]:
                connection.close()
        request.headers["Accept-Encoding"] = "gzip"
        silence = request.extensions.get("timeout", {}).get("read") or 0.0
        seconds = max(silence, self.least_seconds) or math.inf
        _deadline.set(request.extensions.setdefault(_DEADLINE, time.monotonic() + seconds))

    def receive(self, response: Any) -> None:
        """Replace the stream of a response, before anything is read, by one that is limited."""
        encoding = response.headers.pop("Content-Encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            raise FailureError(
                Failure.MALFORMED, f"the server's answer has the encoding {encoding!r} and not gzip"
            )
        stream_type = derive(_LimitedStream, self.http.SyncByteStream)
        response.stream = stream_type(response.stream, encoding == "gzip", self)


@dataclass
class _LimitedStream:
    source: Any
    is_gzip: bool
    rules: _Guard

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in _unzip(self.source, self.rules.http) if self.is_gzip else self.source:
            size += len(piece)
            check_size(size, self.rules.most)
            _shorten(None, self.rules.http.ReadTimeout)  # what has arrived can take long to decode
            yield piece

    def close(self) -> None:
        self.source.close()


def _unzip(stream: Iterable[bytes], http: Any) -> Iterator[bytes]:
    """Decode in small pieces, because a piece can become a thousand times as long.

    A reply can have several members (RFC 1952). What follows a member and is none, such as zero bytes, is ignored, as
    other clients do.
    """
    decoder = zlib.decompressobj(_GZIP)
    is_first = True
    try:
        for rest in stream:
            while rest:
                if decoder.eof:
                    decoder = zlib.decompressobj(_GZIP)
                    is_first = False
                yield decoder.decompress(rest, _PIECE)
                rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
        yield decoder.flush()
    except zlib.error as error:
        if is_first:
            raise http.DecodingError(str(error)) from error


class _Direct:
    """Matches the addresses to which requests use no proxy, in the place of a pattern of the HTTP library."""

    def matches(self, url: Any) -> bool:
        return is_direct(str(url))


class _TimedBackend:
    """Opens connections for httpcore or httpcore2 on which nothing is read or written after the deadline."""

    def __init__(self, backend: Any, core: ModuleType):
        self._backend = backend
        self._core = core
        self.sleep = backend.sleep

    def connect_tcp(self, *arguments: Any, **options: Any) -> _TimedStream:
        return _TimedStream(self._backend.connect_tcp(*arguments, **options), self._core)

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> _TimedStream:
        return _TimedStream(self._backend.connect_unix_socket(*arguments, **options), self._core)


class _TimedStream:
    def __init__(self, stream: Any, core: Any):
        self._stream = stream
        self._core = core
        self.close = stream.close
        self.get_extra_info = stream.get_extra_info

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        piece: bytes = self._stream.read(max_bytes, _shorten(timeout, self._core.ReadTimeout))
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            self._stream.write(rest[:_PIECE], _shorten(timeout, self._core.WriteTimeout))
            rest = rest[_PIECE:]

    def start_tls(self, *arguments: Any, **options: Any) -> _TimedStream:
        return _TimedStream(self._stream.start_tls(*arguments, **options), self._core)


def _shorten(timeout: float | None, error: type[Exception]) -> float | None:
    """Return a timeout that ends at the deadline at the latest; None for no limit."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise error(LATE)
    shortest = min(left, math.inf if timeout is None else timeout)
    return None if shortest == math.inf else shortest


def check_size(size: float, most: float) -> None:
    """Raise a `FailureError` if the part of a reply that has arrived has more than `most` bytes after decompression."""
    if size > most:
        limit = f"{most / MEBIBYTE:g} MiB, the limit in {MAX_REPLY}"
        raise FailureError(Failure.MALFORMED, f"the server's answer is larger than {limit}")


class LimitedBody:
    """The body of a reply, which `requests` reads into memory as a whole: with a limit of its size and its time.

    The time starts when the object is made. Everything except `stream` is taken from `raw`, urllib3's response.
    """

    def __init__(self, raw: Any):
        self._raw = raw
        self._most = max_reply()
        self._end = time.monotonic() + request_timeout()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        """Yield the body in the pieces in which it arrives; raise a failure if it is too large or takes too long."""
        size = 0
        while piece := self._raw.read1(_COMPRESSED_PIECE, decode_content=decode_content):
            size += len(piece)
            check_size(size, self._most)
            if time.monotonic() > self._end:
                raise FailureError(Failure.TEMPORARY, LATE)
            yield piece
