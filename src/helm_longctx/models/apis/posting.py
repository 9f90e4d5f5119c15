"""Sends bodies as a provider's package sends them, without its work for each request.

A package takes several times as long to make a request as its HTTP client takes to send it. So it makes only the first
one to each address. The same HTTP client sends the others, with the address, the headers and the limits of the first
one. A reply that is no answer goes through the package, which raises its own error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from helm_longctx.models.apis.transport import Exchange, Header, use_exchange

_OF_ONE_REQUEST = (
    b"content-length",
    b"cookie",
    b"host",
    b"transfer-encoding",
)
"""Headers that the HTTP client makes for each request."""

_KEY_OF_ONE_REQUEST = b"idempotency"
"""A part of the names of headers with which a server recognizes a request that is sent again."""


class _FirstRequest(NamedTuple):
    """The request that a package's client has made to an address. The others repeat all but its body."""

    library: Any
    url: Any
    headers: list[Header]
    timeout: Any


class Poster:
    """Sends bodies with the HTTP client of a package's client. Several threads may use it.

    Args:
        http: httpx or httpx2.
        http_client: its client, which the package's client has got from us.
    """

    def __init__(self, http: Any, http_client: Any):
        self._http: Any = http
        self._http_client = http_client
        self._first_requests: dict[str, _FirstRequest] = {}

    def post(self, library: Any, url: str, content: bytes) -> bytes:
        """Return the content of the reply to a body.

        Args:
            library: the package's client. Its key must stay the same.

        Raises:
            Exception: of the package; there is no answer.
        """
        first = self._first_requests.get(url)
        if first is None or first.library is not library:
            return self._post_with_package(library, url, content, Exchange())
        try:
            response = self._http_client.send(self._make_request(first, content))
        except Exception as error:  # the package wraps all of them
            exchange = Exchange(outcome=error)
        else:
            if response.is_success:
                return bytes(response.content)
            exchange = Exchange(outcome=self._copy_response(response))
        return self._post_with_package(library, url, content, exchange)

    def _make_request(self, first: _FirstRequest, content: bytes) -> Any:
        # With cookies of the server the client makes a request, which takes three times as long.
        make = self._http.Request
        if self._http_client.cookies:
            make = self._http_client.build_request
        return make(
            "POST",
            first.url,
            content=content,
            headers=first.headers,
            extensions={"timeout": first.timeout},
        )

    def _post_with_package(
        self,
        library: Any,
        url: str,
        content: bytes,
        exchange: Exchange,
    ) -> bytes:
        with use_exchange(exchange):
            response = library.post(url, cast_to=self._http.Response, content=content)
        if exchange.headers is not None and _can_be_repeated(exchange.headers):
            headers = []
            for name, value in exchange.headers:
                if name.lower() not in _OF_ONE_REQUEST:
                    headers.append((name, value))
            self._first_requests[url] = _FirstRequest(
                library=library,
                url=exchange.url,
                headers=headers,
                timeout=exchange.timeout,
            )
        return bytes(response.content)

    def _copy_response(self, response: Any) -> Any:
        """Return a response that has not been read."""
        return self._http.Response(
            response.status_code,
            headers=response.headers,
            content=response.content,
        )


def _can_be_repeated(headers: Iterable[Header]) -> bool:
    return not any(_KEY_OF_ONE_REQUEST in name.lower() for name, _ in headers)
