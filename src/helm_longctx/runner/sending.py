"""Makes the sender of a run's requests: with the client of its deployment, and with the settings of runs.

What identifies a model that runs in this process is kept with its runs, and its memory is freed.
"""

from contextlib import redirect_stdout, suppress
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.failures import Problem, failure_of_error
from helm_longctx.helm_api import (
    BlackHoleCacheBackendConfig,
    Client,
    Context,
    LocalContext,
    get_model_deployment,
)
from helm_longctx.models.apis.sending import (
    Retries,
    Sender,
    limit_time,
)
from helm_longctx.models.endpoints.registration import LOCAL_CLIENTS
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.run_settings import RunSettings
from helm_longctx.runs.files import read_model

_IN_PROCESS = (
    "helm.clients.huggingface_client",
    *(
        f"helm_longctx.models.{name}"
        for name in ("baselines", "engines", "local", "objects")
    ),
)
"""Modules of clients whose model runs in this process."""

_PACKAGES = (
    "helm-longctx",
    "torch",
    "transformers",
    "peft",
    "kvpress",
    "vllm",
    "sglang",
)
"""Packages whose versions can change the answers of a model in this process."""


def make_context(local_path: Path) -> LocalContext:
    """Return HELM's context without a request cache, for answers that are kept by us.

    Args:
        local_path: the folder with HELM's credentials.
    """
    with redirect_stdout(StringIO()):  # HELM prints where it looks for credentials
        return LocalContext(str(local_path), BlackHoleCacheBackendConfig())


def make_sender(context: Context, deployment: str, settings: RunSettings) -> Sender:
    """Return the sender of requests to a deployment. A remote context sends them to a HELM server, which has clients.

    Raises an `InputError` if the client cannot be made: a package or a key is missing, or an argument is wrong.
    """
    limit = settings.request_timeout
    retries = Retries(settings.tries, settings.wait)
    if not isinstance(context, LocalContext):
        return Sender(context, retries, limit)
    client = find_client(context, deployment)
    if any(base.__module__.startswith(_IN_PROCESS) for base in type(client).__mro__):
        return Sender(limit_time(client, RunSettings.request_timeout), retries)
    # The deployment's own timeout counts if it is longer.
    own = getattr(getattr(client, "client", None), "timeout", None)
    if isinstance(own, int | float):
        limit = max(own, limit)
    return Sender(limit_time(client, limit), retries, limit)


def find_client(context: LocalContext, deployment: str) -> Client:
    """Return HELM's client, or raise an `InputError` if a package or a key is missing, or an argument is wrong."""
    try:
        # HELM has no public method to make a client without a request.
        return context.client._get_client(deployment)
    except InputError:
        raise
    except Exception as error:
        problem = Problem(failure_of_error(error), describe_error(error))
        raise InputError(f"{deployment} cannot be asked: {problem}") from error


def find_versions() -> dict[str, str]:
    """Return the versions of the installed ones of `_PACKAGES`."""
    versions = {}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def identify(deployment: str) -> dict[str, Any] | None:
    """Return what identifies the model of a deployment, if it runs in this process."""
    spec = get_model_deployment(deployment).client_spec
    if spec.class_name not in LOCAL_CLIENTS:
        return None
    return {
        "class": spec.class_name,
        **(spec.args or {}),
        "packages": find_versions(),
    }


def has_changed(path: Path, deployment: str) -> bool:
    """Whether the weights in a model's folder differ from the weights of an earlier run."""
    now = (identify(deployment) or {}).get("digest")
    before = read_model(path).get("digest")
    return None not in (now, before) and now != before


def free_model(context: Context, deployment: str) -> None:
    """Free the memory of a deployment's model. HELM's context keeps a client for each deployment."""
    if isinstance(context, LocalContext):
        client = context.client.clients.pop(deployment, None)
    else:
        client = None
    if close := getattr(client, "close", None):
        close()
