"""Creates HELM clients that use a judge's own credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helm.benchmark.model_deployment_registry import ModelDeployment, get_model_deployment
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.helm.patches import apply_patches
from helm_longctx.judging.calls import TIMEOUT, setting
from helm_longctx.judging.keys.find import IN_FILE, FoundKey, find_key, judge_prefix
from helm_longctx.judging.keys.renewal import RenewingClient
from helm_longctx.models.apis.oauth import variable
from helm_longctx.models.apis.sending import limit_time
from helm_longctx.redaction.text import register_credentials


def judge_client(deployment: str, client: AutoClient, seconds: float | None = None) -> Client:
    """Create a HELM client for a judge's deployment, with the judge's own credentials.

    The client attempts each request once, or twice if the key is refused and another key is available. If the judge has
    a key, the client raises no errors but `InputError`: it returns them in results, without secrets.

    Args:
        deployment: name of a HELM deployment.
        client: the client that HELM passes to annotators.
        seconds: longest time of a call; None for the environment's setting.

    Raises:
        InputError: see `check_credentials`.
    """
    apply_patches()  # HELM's Slurm workers do not load the plugin, which would have done so
    register_credentials(client.credentials)
    record = get_model_deployment(deployment)
    seconds = seconds or setting(TIMEOUT)
    found = find_key(record, client.credentials)
    if found is None:
        _warn_of_unused_key(record)
        # HELM's AutoClient has no public way to get one deployment's client.
        return limit_time(client._get_client(deployment), seconds)
    _log_origin(record, found)

    def build(key: str) -> Client:
        # HELM's `provide_api_key` looks the key up under this name.
        credentials = {**client.credentials, f"{record.host_organization}ApiKey": key}
        # The judge gets its own client, because AutoClient keeps one for each deployment, with the key that it had
        # first.
        own = AutoClient(credentials, client.file_storage_path, client.cache_backend_config)
        return limit_time(own._get_client(deployment), seconds)

    return RenewingClient(build, found.keys, found.origin)


class UnavailableClient(Client):
    """Takes the place of a client that cannot be created. Every request fails with the reason."""

    def __init__(self, reason: str):
        self._reason = reason

    def make_request(self, request: Request) -> RequestResult:
        """Raise an `InputError` with the reason."""
        raise InputError(self._reason)


def check_credentials(deployment: str, credentials: Mapping[str, Any]) -> None:
    """Check, before anything is sent, that a judge has the credentials that it needs.

    Args:
        deployment: name of a HELM deployment.
        credentials: content of HELM's credentials file.

    Raises:
        InputError: the judge needs a key and has none, or a set of OAuth variables is incomplete. The message names
            variables but not their values.
    """
    find_key(get_model_deployment(deployment), credentials)


def _log_origin(deployment: ModelDeployment, found: FoundKey) -> None:
    """Log where the judge's key comes from."""
    own = judge_prefix(deployment)
    if own and found.origin.startswith(own[0]):
        hlog(f"judge {deployment.name}: using {found.origin}")
        return
    unset = f"{own[0]}_API_KEY is not set; " if own else ""
    hlog(f"judge {deployment.name}: {unset}using {'' if found.origin == IN_FILE else 'the main key, '}{found.origin}")


def _warn_of_unused_key(deployment: ModelDeployment) -> None:
    for prefix in judge_prefix(deployment):
        if variable(f"{prefix}_API_KEY") or variable(f"{prefix}_CLIENT_ID"):
            hwarn(f"judge {deployment.name}: its client takes no key, so {prefix}_* are not used")
