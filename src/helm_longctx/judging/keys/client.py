"""Judges are asked with credentials of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helm.benchmark.model_deployment_registry import ModelDeployment, get_model_deployment
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import Request, RequestResult

from helm_longctx.helm.patches import apply_patches
from helm_longctx.judging.calls import limited
from helm_longctx.judging.keys.find import IN_FILE, FoundKey, UnavailableJudgeError, find_key, judge_prefix, variable
from helm_longctx.judging.keys.renewal import RenewingClient, failure
from helm_longctx.judging.settings import TIMEOUT, setting
from helm_longctx.redaction.text import register_credentials


def judge_client(deployment: str, client: AutoClient) -> Client:
    """A HELM client for a judge's deployment, with the judge's own credentials.

    It makes one attempt at a request (two where a key was refused and there is another), and raises nothing where the
    judge has a key: errors are in its results, without secrets.

    Args:
        deployment: a name that HELM knows.
        client: HELM's, as annotators get it.

    Raises:
        InputError: as `check_credentials`.
    """
    apply_patches()  # HELM's Slurm workers load no plugin
    register_credentials(client.credentials)
    known = get_model_deployment(deployment)
    found = find_key(known, client.credentials)
    if found is None:
        _warn_unused(known)
        return limited(client._get_client(deployment), setting(TIMEOUT))
    _tell(known, found)

    def build(key: str) -> Client:
        credentials = {**client.credentials, f"{known.host_organization}ApiKey": key}
        made = AutoClient(credentials, client.file_storage_path, client.cache_backend_config)
        return limited(made._get_client(deployment), setting(TIMEOUT))

    return RenewingClient(build, found.keys, found.origin)


class UnavailableClient(Client):
    """In the place of one that cannot be had: every request fails for that reason."""

    def __init__(self, why: str):
        self._why = why

    def make_request(self, request: Request) -> RequestResult:
        """A failure; trying again is of no use."""
        return failure(self._why, retriable=False)


def check_credentials(deployment: str, credentials: Mapping[str, Any]) -> None:
    """Whether a judge can be asked, before anything is sent.

    Args:
        deployment: a name that HELM knows.
        credentials: of HELM's credentials file.

    Raises:
        InputError: the judge needs a key and there is none, or a set of OAuth variables is incomplete. It names
            variables, no values.
    """
    find_key(get_model_deployment(deployment), credentials)


def has_credentials(deployment: str, credentials: Mapping[str, Any]) -> bool:
    """Whether there is a key for a judge, or it needs none.

    Raises:
        InputError: a set of OAuth variables is incomplete, which nobody means.
    """
    try:
        check_credentials(deployment, credentials)
    except UnavailableJudgeError:
        return False
    return True


def _tell(deployment: ModelDeployment, found: FoundKey) -> None:
    own = judge_prefix(deployment)
    if own and found.origin.startswith(own[0]):
        hlog(f"judge {deployment.name}: using {found.origin}")
        return
    unset = f"{own[0]}_API_KEY is not set; " if own else ""
    hlog(f"judge {deployment.name}: {unset}using {'' if found.origin == IN_FILE else 'the main key, '}{found.origin}")


def _warn_unused(deployment: ModelDeployment) -> None:
    for prefix in judge_prefix(deployment):
        if variable(f"{prefix}_API_KEY") or variable(f"{prefix}_CLIENT_ID"):
            hwarn(f"judge {deployment.name}: its client takes no key, so {prefix}_* are not used")
