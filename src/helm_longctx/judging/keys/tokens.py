"""Keeps access tokens, shares them between threads, and renews them in time."""

from __future__ import annotations

import functools
import threading
import time

from helm_longctx.judging.keys.oauth import ClientCredentials, Token, TokenError, request_token

PAUSE = 10
"""Seconds after a failure during which no request is sent; callers get the same failure again."""


class TokenSource:
    """The current token of a client, which all threads share.

    Args:
        client: the client.
    """

    def __init__(self, client: ClientCredentials):
        self._client, self._lock = client, threading.Lock()
        self._held: Token | None = None
        self._failure: tuple[TokenError, float] | None = None

    def current(self) -> str:
        """Return a token that is not about to expire.

        Raises:
            TokenError: no token could be obtained.
        """
        return self._token(refused=None)

    def renew(self, refused: str) -> str:
        """Return another token than the refused one. For one refused token, one new token is requested."""
        return self._token(refused)

    def _token(self, refused: str | None) -> str:
        with self._lock:
            if self._held is None or self._held.value == refused or time.time() >= self._held.fresh_until:
                self._held = self._request()
            return self._held.value

    def _request(self) -> Token:
        # With thousands of requests to judges, each would otherwise ask a server that has just refused.
        if self._failure and time.monotonic() < self._failure[1] + PAUSE:
            raise TokenError(str(self._failure[0]), self._failure[0].refused)
        try:
            return request_token(self._client)
        except TokenError as error:
            self._failure = (error, time.monotonic())
            raise


@functools.cache
def token_source(client: ClientCredentials) -> TokenSource:
    """Return this process's single source of a client's tokens."""
    return TokenSource(client)
