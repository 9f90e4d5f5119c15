"""A HELM client whose key can change between requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from helm.clients.client import Client
from helm.common.request import ErrorFlags, Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, failure_of_error, label_error
from helm_longctx.models.apis.oauth import TokenError
from helm_longctx.redaction.text import redact, register_secret


class KeySource(Protocol):
    """Interface of sources of keys."""

    def current(self) -> str:
        """Return the key to use now."""
        ...

    def renew(self, refused: str) -> str:
        """Return another key than the refused one, or the same if there is no other."""
        ...


class FixedKey:
    """A source with a single key."""

    def __init__(self, key: str):
        register_secret(key)
        self._key = key

    def current(self) -> str:
        """Return the key."""
        return self._key

    def renew(self, refused: str) -> str:
        """Return the same key."""
        return self._key


class RenewingClient(Client):
    """Sends requests with the current key. A request whose key is refused is sent once more with a new key.

    Args:
        build: creates a client for a key.
        keys: source of keys.
        origin: name of the source, for errors.
    """

    def __init__(self, build: Callable[[str], Client], keys: KeySource, origin: str):
        self._build, self._keys, self._origin = build, keys, origin
        self._lock = threading.Lock()
        self._built: tuple[str, Client] | None = None
        self._useless: str | None = None

    def make_request(self, request: Request) -> RequestResult:
        """Send a request. Errors contain no secrets, and a refused key is reported as not retriable.

        Raises:
            InputError: the client cannot be made, for example because a package is missing.
        """
        try:
            key = self._keys.current()
            result = self._send(request, key)
            # If a new key is refused as well, the problem is not the key: do not request more keys.
            if _is_refusal(result) and key != self._useless:
                new = self._keys.renew(key)
                result = self._send(request, new) if new != key else result
                self._useless = new if _is_refusal(result) else None
        except TokenError as error:
            return failure_result(Failure.BAD_KEY if error.refused else Failure.TEMPORARY, str(error))
        if _is_refusal(result):
            return failure_result(Failure.BAD_KEY, f"{self._origin} was refused: {result.error}")
        return replace(result, error=redact(result.error)) if result.error else result

    def current(self) -> Client:
        """Return the client with the current key.

        Raises:
            TokenError: no token could be obtained.
        """
        return self._client(self._keys.current())

    def _send(self, request: Request, key: str) -> RequestResult:
        try:
            return self._client(key).make_request(request)
        except InputError:
            raise
        except Exception as error:  # clients raise errors of any type, which may quote the key
            return failure_result(failure_of_error(error), f"{type(error).__name__}: {error}")

    def _client(self, key: str) -> Client:
        with self._lock:
            # One client is kept, because each has a pool of connections of its own.
            if self._built is None or self._built[0] != key:
                self._built = (key, self._build(key))
            return self._built[1]


def _is_refusal(result: RequestResult) -> bool:
    return failure_of(result) is Failure.BAD_KEY


def failure_result(kind: Failure, error: str) -> RequestResult:
    """Create the result of a failed request, with secrets redacted from the error."""
    return RequestResult(
        success=False,
        embedding=[],
        completions=[],
        cached=False,
        error=label_error(kind, redact(error)),
        error_flags=ErrorFlags(is_retriable=kind.is_retriable),
    )
