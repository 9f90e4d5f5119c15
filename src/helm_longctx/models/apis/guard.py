"""Guards the HTTP clients that send keys and prompts: no other server gets them, and no reply exceeds its limits.

The packages of the providers follow redirects with all headers and the body, decode replies of any size, and limit only
the time between two bytes.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from helm_longctx.environment import max_reply, request_timeout
from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.apis.http import connection_library, derive, http_library
from helm_longctx.models.apis.limits import LATE, check_size
from helm_longctx.redaction.origin import check_origin, is_direct

_ORIGIN, _DEADLINE = "helm_longctx.origin", "helm_longctx.deadline"
"""Names in the extensions of a request. The HTTP library copies them to the requests that follow a redirect, and our
polls of NVCF do, too."""

_PIECE = 1 << 16
"""Bytes that are sent or decoded at once."""

_GZIP = zlib.MAX_WBITS | 16
"""The format that zlib decodes: gzip."""

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""The time on the monotonic clock at which the request of this thread ends."""


def guard(client: Any, least_seconds: float = 0.0, is_bulk: bool = False) -> Any:
    """Limit the requests of an HTTP client, and return it. A client that is guarded stays as it is.

    A redirect to another origin is a failure that names both. A reply has at most the bytes of `max_reply` after
    decoding, and arrives within the time for which the server may stay silent.

    Args:
        client: a client of httpx or httpx2.
        least_seconds: time that a whole reply may take at least.
        is_bulk: whether replies are files that are read line by line. Their size and time are not limited, because
            their reader limits the lines (`batching/results.py`).

    Raises:
        InputError: the setting of the size has a wrong value.
    """
    if any(isinstance(getattr(hook, "__self__", None), _Guard) for hook in client.event_hooks["request"]):
        return client
    http: Any = http_library(type(client))
    # The library takes the proxies of the environment for all addresses.
    client._mounts = {_Direct(): None, **client._mounts}
    pools = [getattr(each, "_pool", None) for each in (client._transport, *client._mounts.values())]
    most, seconds = (math.inf, math.inf) if is_bulk else (max_reply(), least_seconds)
    rules = _Guard(http, most, seconds, [pool for pool in pools if pool])
    hooks = client.event_hooks
    client.event_hooks = {"request": [*hooks["request"], rules.begin], "response": [*hooks["response"], rules.receive]}
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
    """The hooks of an HTTP client.

    Args:
        http: the HTTP library of the client.
        most: bytes of a decoded reply.
        least_seconds: see `guard`.
        pools: the connections of the client.
    """

    http: Any
    most: float
    least_seconds: float
    pools: Sequence[Any]

    def begin(self, request: Any) -> None:
        """Check the address, which may come from a redirect, and start the time of the first request."""
        check_origin(request.extensions.setdefault(_ORIGIN, str(request.url)), str(request.url))
        self._close_dirty_connections()
        request.headers["Accept-Encoding"] = "gzip"
        silence = request.extensions.get("timeout", {}).get("read") or 0.0
        seconds = max(silence, self.least_seconds) or math.inf
        _deadline.set(request.extensions.setdefault(_DEADLINE, time.monotonic() + seconds))

    def _close_dirty_connections(self) -> None:
        """Close idle connections on which more than a reply has arrived. It would be the answer to the next request."""
        for connection in [each for pool in self.pools for each in list(getattr(pool, "_connections", ()))]:
            state = getattr(getattr(connection, "_connection", None), "_h11_state", None)
            if state is not None and connection.is_idle() and state.trailing_data[0]:
                connection.close()

    def receive(self, response: Any) -> None:
        """Replace the stream of a response, before anything is read, by one that is limited."""
        encoding = response.headers.pop("Content-Encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            raise FailureError(Failure.MALFORMED, f"the server's answer has the encoding {encoding!r} and not gzip")
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
    decoder, is_first = zlib.decompressobj(_GZIP), True
    try:
        for rest in stream:
            while rest:
                if decoder.eof:
                    decoder, is_first = zlib.decompressobj(_GZIP), False
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
    """Opens connections on which nothing is read or written after the deadline.

    Args:
        backend: opens the connections.
        core: the library that uses them, httpcore or httpcore2.
    """

    def __init__(self, backend: Any, core: ModuleType):
        self._backend, self._core = backend, core

    def connect_tcp(self, *arguments: Any, **options: Any) -> _TimedStream:
        return _TimedStream(self._backend.connect_tcp(*arguments, **options), self._core)

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> _TimedStream:
        return _TimedStream(self._backend.connect_unix_socket(*arguments, **options), self._core)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _TimedStream:
    def __init__(self, stream: Any, core: Any):
        self._stream, self._core = stream, core

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        piece: bytes = self._stream.read(max_bytes, _shorten(timeout, self._core.ReadTimeout))
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            self._stream.write(rest[:_PIECE], _shorten(timeout, self._core.WriteTimeout))
            rest = rest[_PIECE:]

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *arguments: Any, **options: Any) -> _TimedStream:
        return _TimedStream(self._stream.start_tls(*arguments, **options), self._core)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _shorten(timeout: float | None, error: type[Exception]) -> float | None:
    """Return a timeout that ends at the deadline at the latest; None for no limit."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise error(LATE)
    shortest = min(left, math.inf if timeout is None else timeout)
    return None if shortest == math.inf else shortest
