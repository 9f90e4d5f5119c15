"""Access tokens by OAuth 2.0 client credentials (RFC 6749, section 4.4).

Finds the clients in the environment, requests their tokens, shares them between threads, and renews them in time.
"""

from __future__ import annotations

import functools
import io
import logging
import re
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from helm_longctx.environment import page_address
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, FailureError
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.transport import ArrivingBody
from helm_longctx.redaction.origin import check_origin
from helm_longctx.redaction.text import redact, register_secret
from helm_longctx.run_settings import TOKEN_TIMEOUT, find_credentials, settings_in_use

if TYPE_CHECKING:
    from requests import Response

_PIECE = 1 << 14
"""Bytes of a response that are decoded at once."""

_LEEWAY = 60
"""Seconds before its expiry at which a token is renewed, or a fifth of its lifetime if that is less."""

_ATTEMPTS = 4
_FIRST_WAIT = 0.5
"""Attempts to get a token while the server cannot be reached or reports an internal error, and seconds before the
second one. The wait doubles with each further attempt."""

_PAUSE = 10
"""Seconds after a failure during which no request is sent; callers get the same failure again."""

PAGE = page_address("judges#keys")

SAFE_ADDRESS = re.compile(
    r"https://|http://(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?(?:/|$)"
)
"""Addresses to which a client's secret and its tokens may be sent: encrypted, or on this machine."""

_log = logging.getLogger(__name__)


class TokenError(FailureError):
    """A token could not be obtained. The message names the server and the reason.

    Attributes:
        refused: whether the server refused the request, so that a retry is useless.
        late: whether the server did not answer in time.
    """

    def __init__(
        self,
        message: str,
        refused: bool,
        late: bool = False,
    ):
        super().__init__(
            Failure.BAD_KEY if refused else Failure.TEMPORARY, redact(message)
        )
        self.refused = refused
        self.late = late


@dataclass(frozen=True)
class ClientCredentials:
    """A client and the server that issues its tokens."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None

    def __post_init__(self) -> None:
        register_secret(self.client_secret)


@dataclass(frozen=True)
class _Token:
    """An access token.

    Attributes:
        fresh_until: time to renew the token, in seconds since the epoch; a little before it expires.
    """

    value: str = field(repr=False)
    fresh_until: float

    def __post_init__(self) -> None:
        register_secret(self.value)


def request_token(client: ClientCredentials) -> _Token:
    """Request a token, with the secret in the header as RFC 6749 recommends, or in the body if the server refuses that.

    Raises:
        InputError: the setting of the time limit has a wrong value.
        TokenError: the server refused, did not answer in time, or could not be reached in several attempts.
    """
    method = "client_secret_basic"
    wait = _FIRST_WAIT
    attempts = _ATTEMPTS
    while True:
        try:
            return _fetch_token(client, method)
        except TokenError as error:
            if error.refused and method == "client_secret_basic":
                # A refusal of the secret in the header looks like one of the client, so a wrong secret is sent twice.
                method = "client_secret_post"
                continue
            attempts -= 1
            if error.refused or error.late or not attempts:
                raise
            _log.warning("%s; it is asked again in %g seconds", error, wait)
        time.sleep(wait)
        wait *= 2


def _fetch_token(client: ClientCredentials, method: str) -> _Token:
    import requests
    from authlib.common.errors import AuthlibBaseError
    from authlib.integrations.requests_client import OAuth2Session

    # The time is taken before the request: the server counts the lifetime from the moment at which it makes the token,
    # not from its arrival.
    started = time.time()
    seconds = settings_in_use().token_timeout
    names = {"token_endpoint_auth_method": method, "scope": client.scope}
    with OAuth2Session(client.client_id, client.client_secret, **names) as session:
        session.register_compliance_hook(
            "access_token_response", partial(_read_answer, client, seconds)
        )
        try:
            # Redirects are not followed: they could send the secret to another server.
            answer = session.fetch_token(
                client.token_url,
                grant_type="client_credentials",
                timeout=seconds,
                allow_redirects=False,
                stream=True,
            )
            return _token_of(
                client, answer if isinstance(answer, dict) else {}, started
            )
        except TokenError:
            raise
        except (FailureError, AuthlibBaseError) as error:
            # `from None`, because the cause holds the request with the secret.
            raise _failure(client, str(error), refused=True) from None
        except requests.HTTPError as error:
            status = error.response.status_code
            raise _failure(
                client, f"status {status}", refused=status < 500 and status != 429
            ) from None
        except (
            ValueError,
            TypeError,
            OverflowError,
        ):  # no JSON, or `expires_in` is not a number
            raise _failure(
                client, "its response is not a token", refused=False
            ) from None
        except requests.Timeout:
            raise _late(client, seconds) from None
        except requests.RequestException as error:
            raise _failure(
                client, type(error).__name__, refused=False
            ) from None  # its text quotes the request


def _read_answer(
    client: ClientCredentials,
    seconds: float,
    response: Response,
) -> Response:
    """Return an answer of the token server that has arrived as a whole."""
    import requests

    if response.is_redirect:
        check_origin(
            client.token_url, urljoin(client.token_url, response.headers["Location"])
        )
    response.raw = ArrivingBody(response.raw)
    content = bytearray()
    end = time.monotonic() + seconds
    for piece in response.iter_content(_PIECE):
        content += piece
        if len(content) > settings_in_use().max_reply_bytes:
            raise _failure(client, "its response is too large", refused=False)
        if time.monotonic() > end:
            raise _late(client, seconds)
    whole = requests.Response()
    whole.url = response.url
    whole.status_code = response.status_code
    whole.raw = io.BytesIO(content)
    return whole


def _token_of(
    client: ClientCredentials,
    answer: dict[str, Any],
    started: float,
) -> _Token:
    value = answer.get("access_token")
    life = answer.get("expires_in")
    if not isinstance(value, str) or not value:
        raise _failure(client, "its response has no access_token", refused=True)
    # `expires_in` is only recommended (RFC 6749, section 5.1). Without it a token is used until it is refused.
    seconds = float("inf") if life is None else float(life)
    return _Token(value, started + seconds - min(_LEEWAY, seconds / 5))


def _late(client: ClientCredentials, seconds: float) -> TokenError:
    about = f"no token from {client.token_url} for client {client.client_id} within {seconds:g} seconds"
    return TokenError(
        f"{about}; {TOKEN_TIMEOUT} sets the limit", refused=False, late=True
    )


def _failure(client: ClientCredentials, why: str, refused: bool) -> TokenError:
    return TokenError(
        f"no token from {client.token_url} for client {client.client_id}: {why}",
        refused,
    )


class TokenSource:
    """The current token of a client, for all threads."""

    def __init__(self, client: ClientCredentials):
        self._client = client
        self._lock = threading.Lock()
        self._held: _Token | None = None
        self._failure: tuple[TokenError, float] | None = None

    def current(self, refused: str | None = None) -> str:
        """Return a token that is not about to expire, and not the refused one.

        For one refused token, one new token is requested.

        Raises:
            TokenError: no token could be obtained.
        """
        with self._lock:
            if (
                self._held
                and self._held.value != refused
                and time.time() < self._held.fresh_until
            ):
                return self._held.value
            # With thousands of requests to judges, each would otherwise ask a server that has just refused.
            if self._failure and time.monotonic() < self._failure[1] + _PAUSE:
                raise TokenError(str(self._failure[0]), self._failure[0].refused)
            self._log_request(refused)
            try:
                self._held = request_token(self._client)
            except TokenError as error:
                self._failure = (error, time.monotonic())
                raise
            return self._held.value

    def _log_request(self, refused: str | None) -> None:
        """Log why a token is requested, in the words of NVIDIA's fork of HELM, which people search for."""
        client = self._client
        if self._held is None:
            helm_log.info(
                f"Creating new OAuth token for client {client.client_id} at {client.token_url}"
            )
        elif self._held.value == refused:
            helm_log.info(
                f"Authentication error detected for client {client.client_id},"
                " attempting to create new token"
            )
        else:
            helm_log.info(f"token expired, refreshing it for client {client.client_id}")


@functools.cache
def token_source(client: ClientCredentials) -> TokenSource:
    """Return this process's single source of a client's tokens."""
    return TokenSource(client)


def find_tokens(prefix: str) -> TokenSource | None:
    """Return the source of the tokens of the client in `PREFIX_CLIENT_ID` and the like, or None if they are not set.

    Raises an `InputError` if the variables are incomplete, or the token server's address is not safe.
    """
    credentials = find_credentials(prefix)
    values = {
        f"{prefix}_CLIENT_ID": credentials.client_id,
        f"{prefix}_CLIENT_SECRET": credentials.client_secret,
        f"{prefix}_TOKEN_URL": credentials.token_url,
    }
    missing = [name for name, value in values.items() if not value]
    # Of a host's variables only TOKEN_URL is sure to be meant for us: other programs also read GOOGLE_CLIENT_ID.
    if prefix.endswith("_JUDGE"):
        is_intended = any(values.values())
    else:
        is_intended = bool(credentials.token_url)
    if not is_intended:
        return None
    if missing:
        present = [name for name in values if name not in missing]
        raise InputError(
            f"{' and '.join(present)} set, but not {' and '.join(missing)}; set all or"
            f" none ({PAGE})"
        )
    if not SAFE_ADDRESS.match(credentials.token_url):
        raise InputError(
            f"{prefix}_TOKEN_URL must be an https:// address or an address of this machine; see {PAGE}"
        )
    return token_source(
        ClientCredentials(
            token_url=credentials.token_url,
            client_id=credentials.client_id,
            client_secret=credentials.client_secret,
            scope=credentials.scope or None,
        )
    )
