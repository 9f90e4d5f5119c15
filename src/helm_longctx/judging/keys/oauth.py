"""OAuth 2.0 client credentials (RFC 6749, section 4.4): one request for one token."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from helm_longctx.redaction.text import redact, register_secret

TIMEOUT = 30
"""Seconds for an answer of the token server."""

LEEWAY = 60
"""Seconds before its end at which a token is renewed; a fifth of its life if that is less."""

ATTEMPTS = 4
"""At one token, while the server cannot be reached or has a fault."""


class TokenError(RuntimeError):
    """No token could be had. The message names the server and its reason.

    Attributes:
        refused: the server said no, so that asking again is of no use.
    """

    def __init__(self, message: str, refused: bool):
        super().__init__(redact(message))
        self.refused = refused


@dataclass(frozen=True)
class ClientCredentials:
    """Who asks for a token, and where."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None

    def __post_init__(self) -> None:
        register_secret(self.client_secret)

    @property
    def digest(self) -> str:
        """What tells them from others without telling the secret."""
        return hashlib.sha256("\0".join([self.token_url, self.client_id, self.scope or ""]).encode()).hexdigest()


@dataclass(frozen=True)
class Token:
    """An access token.

    Attributes:
        fresh_until: seconds since the epoch; then another is asked for, though this one is valid for a moment more.
    """

    value: str = field(repr=False)
    fresh_until: float

    def __post_init__(self) -> None:
        register_secret(self.value)


def request_token(client: ClientCredentials) -> Token:
    """Ask the server. The secret goes into the header, as RFC 6749 wants, or into the body if the server wants that.

    Raises:
        TokenError: it refused, or cannot be reached after some attempts.
    """
    try:
        return _fetch_token(client, "client_secret_basic")
    except TokenError as error:
        if not error.refused:
            raise
    return _fetch_token(client, "client_secret_post")


def _fetch_token(client: ClientCredentials, method: str) -> Token:
    import requests
    from authlib.common.errors import AuthlibBaseError
    from authlib.integrations.requests_client import OAuth2Session

    started = time.time()
    names = {"token_endpoint_auth_method": method, "scope": client.scope}
    with OAuth2Session(client.client_id, client.client_secret, **names) as session:
        _retry_on_faults(session)
        try:
            # A redirect could lead the secret to somebody else.
            answer = session.fetch_token(
                client.token_url, grant_type="client_credentials", timeout=TIMEOUT, allow_redirects=False
            )
            return _token_of(client, answer if isinstance(answer, dict) else {}, started)
        except AuthlibBaseError as error:
            raise _failure(client, str(error), refused=True) from None
        except requests.HTTPError as error:
            status = error.response.status_code
            raise _failure(client, f"status {status}", refused=status < 500 and status != 429) from None
        except (ValueError, TypeError, OverflowError):  # no JSON, or a life that is no number
            raise _failure(client, "its answer is no token", refused=False) from None
        except requests.RequestException as error:
            raise _failure(client, type(error).__name__, refused=False) from None  # its text quotes the request


def _token_of(client: ClientCredentials, answer: dict[str, Any], started: float) -> Token:
    value, life = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(value, str) or not value:
        raise _failure(client, "its answer has no access_token", refused=True)
    seconds = float("inf") if life is None else float(life)
    return Token(value, started + seconds - min(LEEWAY, seconds / 5))


def _retry_on_faults(session: Any) -> None:
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    retry = Retry(
        ATTEMPTS - 1,
        backoff_factor=0.5,
        status_forcelist=(429, 500, 502, 503, 504),
        allowed_methods=("POST",),
        respect_retry_after_header=False,  # it can be hours
        raise_on_status=False,
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))


def _failure(client: ClientCredentials, why: str, refused: bool) -> TokenError:
    return TokenError(f"no token from {client.token_url} for client {client.client_id}: {why}", refused)
