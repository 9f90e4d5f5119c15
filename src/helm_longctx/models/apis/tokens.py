"""Finds clients of token servers in the environment. Keeps their tokens, shares them between threads, and renews them
in time."""

from __future__ import annotations

import functools
import os
import re
import threading
import time

from helm_longctx.environment import page_address
from helm_longctx.errors import InputError
from helm_longctx.models.apis.oauth import ClientCredentials, Token, TokenError, request_token

PAGE = page_address("judges#keys")

SAFE_ADDRESS = re.compile(r"https://|http://(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?(?:/|$)")
"""Addresses to which a client's secret and its tokens may be sent: encrypted, or on this machine."""

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


def find_tokens(prefix: str) -> TokenSource | None:
    """Return the source of the tokens of the client in `PREFIX_CLIENT_ID` and the like; None if they are not set.

    Raises:
        InputError: the variables are incomplete, or the token server's address is not safe.
    """
    names = [f"{prefix}_{name}" for name in ("CLIENT_ID", "CLIENT_SECRET", "TOKEN_URL")]
    missing = [name for name in names if not variable(name)]
    # Of a host's variables only TOKEN_URL is sure to be meant for us: other programs also read GOOGLE_CLIENT_ID.
    intended = any(map(variable, names)) if prefix.endswith("_JUDGE") else bool(variable(names[2]))
    if not intended:
        return None
    if missing:
        present = [name for name in names if name not in missing]
        raise InputError(f"{' and '.join(present)} set, but not {' and '.join(missing)}; set all or none ({PAGE})")
    client_id, client_secret, token_url = map(variable, names)
    if not SAFE_ADDRESS.match(token_url):
        raise InputError(f"{names[2]} must be an https:// address or an address of this machine; see {PAGE}")
    return token_source(ClientCredentials(token_url, client_id, client_secret, variable(f"{prefix}_SCOPE") or None))


def variable(name: str) -> str:
    """Return the value of an environment variable without surrounding spaces; empty if it is not set."""
    return os.environ.get(name, "").strip()
