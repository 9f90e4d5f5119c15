"""Models that run in this process: what identifies them is kept with their runs, and their memory is freed."""

from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.benchmark.run_spec import RunSpec
from helm.common.context import Context
from helm.common.local_context import LocalContext

from helm_longctx.models.endpoints.registration import LOCAL_CLIENTS
from helm_longctx.runs.files import read_model

PACKAGES = ("helm-longctx", "torch", "transformers", "peft", "kvpress", "vllm", "sglang")
"""Packages whose versions can change the answers of a model in this process."""


def find_versions() -> dict[str, str]:
    """Return the versions of the installed ones of `PACKAGES`."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def identify(deployment: str) -> dict[str, Any] | None:
    """Return what identifies the model of a deployment that runs in this process; None for another one."""
    spec = get_model_deployment(deployment).client_spec
    if spec.class_name not in LOCAL_CLIENTS:
        return None
    return {"class": spec.class_name, **(spec.args or {}), "packages": find_versions()}


def has_changed(path: Path, deployment: str) -> bool:
    """Whether the weights in a model's folder differ from the weights that a finished run used."""
    identity = identify(deployment) or {}
    before = read_model(path).get("digest")
    return before is not None and identity.get("digest") not in (None, before)


class Departures:
    """Frees the memory of each model after its last run.

    Args:
        context: HELM's context, which keeps a client for each deployment.
        specs: the runs, each of which ends with a call of `leave`.
    """

    def __init__(self, context: Context, specs: Iterable[RunSpec]):
        self._context = context
        self._left = Counter(spec.adapter_spec.model_deployment for spec in specs)

    def leave(self, deployment: str) -> None:
        """Note the end of a run."""
        self._left[deployment] -= 1
        if self._left[deployment] == 0 and isinstance(self._context, LocalContext):
            client = self._context.client.clients.pop(deployment, None)
            close = getattr(client, "close", None)
            if close:
                close()
