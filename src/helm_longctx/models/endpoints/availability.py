"""Asks providers whether the models of deployments still exist."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ModelDeployment,
    get_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig

from helm_longctx.apis.prices import MODEL_ARGUMENTS
from helm_longctx.endpoints.listing import ListedModel, get_model, list_models
from helm_longctx.endpoints.probe import nearest
from helm_longctx.redaction.text import redact

Finding = tuple[bool | None, str]
"""Whether a model exists (None if that is unknown), and a line of text about it."""

_LONGEST_REASON = 120


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
    lists: dict[tuple[str, str], list[ListedModel] | Exception] = {}
    for name in names:
        try:
            library: Any = getattr(clients._get_client(name), "client", None)
        except Exception as error:  # clients raise many kinds for a missing key or package
            yield None, f"{name} was not checked: {_explain(error)}"
            continue
        if type(library).__module__.partition(".")[0] not in ("openai", "anthropic"):
            yield None, f"{name} was not checked: its client has no models route"
            continue
        # The models that a provider lists depend on the account, so there is a list for each address and key.
        address = (str(library.base_url), str(library.api_key))
        if address not in lists:
            lists[address] = _list(library)
        yield _check(name, library, lists[address])


def read_names(folder: Path) -> list[str]:
    """Return the names of the deployments in a folder's model_deployments.yaml; an empty list without this file."""
    path = folder / "model_deployments.yaml"
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))["model_deployments"] if path.is_file() else []
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


def _list(library: Any) -> list[ListedModel] | Exception:
    try:
        return list_models(library)
    except Exception as error:
        return error


def _check(name: str, library: Any, listed: list[ListedModel] | Exception) -> Finding:
    model = _served_name(get_model_deployment(name))
    if isinstance(listed, Exception):
        status = getattr(listed, "status_code", None)
        # Only 401 means that the key is wrong. Some servers answer 403 or 404 because they have no models route.
        if status == 401:
            return False, f"{name}: {library.base_url} refuses the key"
        return None, f"{name} was not checked: {library.base_url}: {_explain(listed)}"
    found = next((each for each in listed if each.name == model), None)
    if found is None:
        try:
            # A list can lack aliases, so a model is missing only if the server says so when asked for its name.
            found = get_model(library, model)
        except Exception as error:
            if getattr(error, "status_code", None) != 404:
                return None, f"{name} is not in the list of {library.base_url}, which may be incomplete"
            similar = nearest(model, [each.name for each in listed])
            return (
                False,
                f"{name}: {library.base_url} does not have the model {model}; it has {similar}",
            )
    return True, f"{name} exists" + (f" until {found.shutdown}" if found.shutdown else "")


def _served_name(deployment: ModelDeployment) -> str:
    arguments = deployment.client_spec.args
    engine = str(deployment.model_name).partition("/")[2]
    return next((str(arguments[name]) for name in MODEL_ARGUMENTS if arguments.get(name)), engine)


def _explain(error: Exception) -> str:
    return redact(" ".join(str(error.__cause__ or error).split()))[:_LONGEST_REASON]
