"""A HELM client whose key can change while it is used."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from helm.clients.client import Client
from helm.common.request import ErrorFlags, Request, RequestResult
from helm.proxy.retry import NonRetriableException

from helm_longctx.judging.keys.oauth import TokenError
from helm_longctx.redaction.text import redact, register_secret

_REFUSED = re.compile(
    r"\b(?:code|status|http|error)\W{0,5}401\b|\b401\W+(?:client error|unauthori[sz]ed)|authentication_error"
    r"|invalid_api_key|\btoken (?:has |is )?expired|\bexpired token",
    re.IGNORECASE,
)
"""What the errors of HELM's clients say when a key was refused."""


class KeySource(Protocol):
    """Where a key comes from."""

    def current(self) -> str:
        """The key to use now."""
        ...

    def renew(self, refused: str) -> str:
        """Another key than one that was refused; the same if there is no other."""
        ...


class FixedKey:
    """A key that stays."""

    def __init__(self, key: str):
        register_secret(key)
        self._key = key

    def current(self) -> str:
        """The key."""
        return self._key

    def renew(self, refused: str) -> str:
        """The same."""
        return self._key


class RenewingClient(Client):
    """Sends requests with the current key; one whose key is refused is sent once more with a new key.

    Args:
        build: a client for a key.
        keys: gives keys.
        origin: where they come from, for errors.
    """

    def __init__(self, build: Callable[[str], Client], keys: KeySource, origin: str):
        self._build, self._keys, self._origin = build, keys, origin
        self._lock = threading.Lock()
        self._built: tuple[str, Client] | None = None
        self._useless: str | None = None

    def make_request(self, request: Request) -> RequestResult:
        """The answer, or a failure whose error names no secret; a refused key is no reason to try again."""
        try:
            key = self._keys.current()
            result = self._send(request, key)
            # A new key that was refused too says that keys are not what is wrong: do not ask for more of them.
            if _is_refusal(result) and key != self._useless:
                new = self._keys.renew(key)
                result = self._send(request, new) if new != key else result
                self._useless = new if _is_refusal(result) else None
        except TokenError as error:
            return failure_result(str(error), retriable=not error.refused)
        if _is_refusal(result):
            return failure_result(f"{self._origin} was refused: {result.error}", retriable=False)
        return replace(result, error=redact(result.error)) if result.error else result

    def _send(self, request: Request, key: str) -> RequestResult:
        try:
            return self._client(key).make_request(request)
        except Exception as error:  # clients raise what they like, and may quote the key
            status = "status 401: " if _status(error) == 401 else ""
            retriable = not isinstance(error, NonRetriableException)
            return failure_result(f"{status}{type(error).__name__}: {error}", retriable)

    def _client(self, key: str) -> Client:
        with self._lock:
            if self._built is None or self._built[0] != key:
                self._built = (key, self._build(key))
            return self._built[1]


def _is_refusal(result: RequestResult) -> bool:
    return not result.success and bool(_REFUSED.search(result.error or ""))


def _status(error: Exception) -> object:
    """The HTTP status that a provider's library puts into its errors."""
    return getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)


def failure_result(error: str, retriable: bool) -> RequestResult:
    """A request's result that says why there is none, without secrets."""
    return RequestResult(
        success=False,
        embedding=[],
        completions=[],
        cached=False,
        error=redact(error),
        error_flags=ErrorFlags(is_retriable=retriable),
    )
