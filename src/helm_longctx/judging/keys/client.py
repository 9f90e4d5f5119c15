"""Creates HELM clients that use a judge's own credentials."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, failure_of_error
from helm_longctx.helm.patches import apply_patches
from helm_longctx.judging.calls import TIMEOUT, setting
from helm_longctx.judging.keys.find import IN_FILE, KeySource, find_key, judge_prefix
from helm_longctx.models.apis.oauth import TokenError, variable
from helm_longctx.models.apis.protocol import failure_result
from helm_longctx.models.apis.sending import limit_time
from helm_longctx.redaction.text import redact, register_credentials


def judge_client(deployment: str, client: AutoClient, seconds: float | None = None) -> Client:
    """Create a HELM client for a judge's deployment, with the judge's own credentials (`check_credentials`).

    The client attempts each request once, or twice if the key is refused and another key is available, within some
    seconds. If the judge has a key, the client raises no errors but `InputError`: it returns them in results, without
    secrets.
    """
    apply_patches()  # HELM's Slurm workers do not load the plugin, which would have done so
    register_credentials(client.credentials)
    record = get_model_deployment(deployment)
    seconds = seconds or setting(TIMEOUT)
    found = find_key(record, client.credentials)
    if found is None:
        for prefix in judge_prefix(record):
            if variable(f"{prefix}_API_KEY") or variable(f"{prefix}_CLIENT_ID"):
                hwarn(f"judge {deployment}: its client takes no key, so {prefix}_* are not used")
        # HELM's AutoClient has no public way to get one deployment's client.
        return limit_time(client._get_client(deployment), seconds)
    own = judge_prefix(record)
    is_own = own and found.origin.startswith(own[0])
    unset = f"{own[0]}_API_KEY is not set; " if own and not is_own else ""
    main = "" if is_own or found.origin == IN_FILE else "the main key, "
    hlog(f"judge {deployment}: {unset}using {main}{found.origin}")

    def build(key: str) -> Client:
        # HELM's `provide_api_key` looks the key up under this name.
        credentials = {**client.credentials, f"{record.host_organization}ApiKey": key}
        # The judge gets its own client, because AutoClient keeps one for each deployment, with the key that it had
        # first.
        own = AutoClient(credentials, client.file_storage_path, client.cache_backend_config)
        return limit_time(own._get_client(deployment), seconds)

    return RenewingClient(build, found.keys, found.origin)


class RenewingClient(Client):
    """Sends requests with the current key. A request whose key is refused is sent once more with a new key."""

    def __init__(self, build: Callable[[str], Client], keys: KeySource, origin: str):
        self._build, self._keys, self._origin = build, keys, origin
        self._lock = threading.Lock()
        self._built: tuple[str, Client] | None = None
        self._useless: str | None = None

    def make_request(self, request: Request) -> RequestResult:
        """Send a request, or raise an `InputError`. Errors have no secrets, and a refused key is not retried."""
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
        """Return the client with the current key. Raises a `TokenError` if no token could be obtained."""
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


class UnavailableClient(Client):
    """Takes the place of a client that cannot be created. Every request fails with the reason."""

    def __init__(self, reason: str):
        self._reason = reason

    def make_request(self, request: Request) -> RequestResult:
        """Raise an `InputError` with the reason."""
        raise InputError(self._reason)


def check_credentials(deployment: str, credentials: Mapping[str, Any]) -> None:
    """Raise an `InputError`, without values, if a judge lacks a key or a part of its OAuth variables."""
    find_key(get_model_deployment(deployment), credentials)
