"""Asks providers whether the models of deployments still exist."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ModelDeployment,
    get_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.failures import Failure
from helm_longctx.models.apis.availability import Availability, list_available, look_up
from helm_longctx.models.apis.listing import ListedModel
from helm_longctx.models.apis.prices import MODEL_ARGUMENTS
from helm_longctx.models.apis.provider import library_provider
from helm_longctx.redaction.abbreviation import describe_error

Finding = tuple[bool | None, str]
"""Whether a model exists (None if that is unknown), and a line of text about it."""


def check_models(names: Iterable[str], credentials: Mapping[str, Any], storage: str) -> Iterator[Finding]:
    """Ask the providers of deployments whether they have the models. Nothing is generated.

    If a key is missing or a provider cannot be reached, it is unknown whether the model exists.

    Args:
        names: deployments that HELM knows.
        credentials: HELM's credentials.
        storage: a folder in which HELM's clients may write.
    """
    # HELM makes the clients, so address, key and headers are the same as in a run.
    clients = AutoClient(credentials, storage, BlackHoleCacheBackendConfig())
    lists: dict[tuple[str, str], tuple[list[ListedModel], Availability]] = {}
    for name in names:
        try:
            client = clients._get_client(name)
        except Exception as error:  # clients raise many kinds for a missing key or package
            yield None, f"{name} was not checked: {describe_error(error)}"
            continue
        if library_provider(client) is None:
            yield None, f"{name} was not checked: its client has no models route"
            continue
        # The models that a provider lists depend on the account, so there is a list for each address and key.
        address = (str(client.client.base_url), str(client.client.api_key))
        if address not in lists:
            lists[address] = list_available(client)
        yield _check(name, client, *lists[address])


def read_names(folder: Path) -> list[str]:
    """Return the names of the deployments in a folder's model_deployments.yaml; an empty list without this file."""
    path = folder / "model_deployments.yaml"
    rows = read_yaml(path)["model_deployments"] if path.is_file() else []
    return [str(row["name"]) for row in rows]


def has_key(name: str, credentials: Mapping[str, Any]) -> bool:
    """Whether `name` is a deployment whose key is set in the environment or in HELM's credentials."""
    deployment = DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.get(name)
    if deployment is None:
        return False
    host = deployment.host_organization
    # HELM's credentials and the variables of most packages are named after the host organization.
    variable = deployment.client_spec.args.get("api_key_env", f"{host.upper()}_API_KEY")
    return bool(os.environ.get(variable)) or f"{host}ApiKey" in credentials


def _check(name: str, client: Any, models: list[ListedModel], state: Availability) -> Finding:
    server, model = client.client.base_url, _served_name(get_model_deployment(name))
    if state.failure is Failure.BAD_KEY:
        return False, f"{name}: {server} refuses the key"
    if state.failure is not None:
        return None, f"{name} was not checked: {server}: {state.reason}"
    found = look_up(client, model, models)
    if found.exists is None:
        return None, f"{name} is not in the list of {server}, which may be incomplete"
    if found.listed is None:
        return False, f"{name}: {server} does not have the model {model}; {found.reason}"
    return True, f"{name} exists" + (f" until {found.listed.shutdown}" if found.listed.shutdown else "")


def _served_name(deployment: ModelDeployment) -> str:
    arguments = deployment.client_spec.args
    engine = str(deployment.model_name).partition("/")[2]
    return next((str(arguments[name]) for name in MODEL_ARGUMENTS if arguments.get(name)), engine)
