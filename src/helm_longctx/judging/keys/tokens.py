"""Stores access tokens, shares them between threads and processes, and renews them in time."""

from __future__ import annotations

import functools
import json
import logging
import os
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path

from helm_longctx.judging.keys.oauth import ClientCredentials, Token, TokenError, request_token
from helm_longctx.locks import hold_lock

PAUSE = 10
"""Seconds after a failure during which no request is sent; callers get the same failure again."""

_log = logging.getLogger(__name__)


class TokenSource:
    """The current token of a client, shared by all threads and by all processes of a user.

    Args:
        client: the client.
        folder: folder for token files, which only their owner can read.
    """

    def __init__(self, client: ClientCredentials, folder: Path):
        # Half of the digest's digits are enough to identify the client, and keep file names short.
        self._client, self._file = client, folder / f"{client.digest[:32]}.json"
        self._lock = threading.Lock()
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
            if not _usable(self._held, refused):
                self._held = self._after_pause(refused)
            assert self._held is not None
            return self._held.value

    def _after_pause(self, refused: str | None) -> Token:
        # With thousands of requests to judges, each would otherwise ask a server that has just refused.
        if self._failure and time.monotonic() < self._failure[1] + PAUSE:
            raise TokenError(str(self._failure[0]), self._failure[0].refused)
        try:
            return self._load_or_request(refused)
        except TokenError as error:
            self._failure = (error, time.monotonic())
            raise

    def _load_or_request(self, refused: str | None) -> Token:
        with hold_lock(self._file.with_name(f"{self._file.name}.lock"), "tokens are not shared"):
            # Read under the lock: another process may have renewed the token while this one waited.
            token = _read_token(self._file)
            if not _usable(token, refused):
                token = request_token(self._client)
                _write_token(self._file, token)
            assert token is not None
            return token


@functools.cache
def token_source(client: ClientCredentials) -> TokenSource:
    """Return this process's single source of a client's tokens, which stores them in the user's cache folder."""
    import platformdirs

    return TokenSource(client, platformdirs.user_cache_path("helm-longctx") / "oauth")


def _usable(token: Token | None, refused: str | None) -> bool:
    return token is not None and token.value != refused and time.time() < token.fresh_until


def _read_token(file: Path) -> Token | None:
    """Read the stored token; None if there is none or its file is damaged."""
    try:
        record = json.loads(file.read_bytes())
        return Token(str(record["value"]), float(record["fresh_until"]))
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _write_token(file: Path, token: Token) -> None:
    """Store a token. `mkstemp` creates the file with mode 0600, so other users can never read it."""
    try:
        handle, part = tempfile.mkstemp(dir=file.parent, prefix=file.stem)
        with os.fdopen(handle, "w") as out:
            json.dump(asdict(token), out)
        os.replace(part, file)
    except OSError as error:
        _log.warning("a token is not stored for later runs: %s (%s)", file, type(error).__name__)
