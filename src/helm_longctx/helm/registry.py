"""HELM's registries: models, deployments, run entries, classes and credentials, as commands ask for them.

HELM is imported when a function is called, because most commands start without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm.benchmark.model_deployment_registry import ModelDeployment
    from helm.benchmark.run_spec import RunSpec

    Specs = Callable[..., RunSpec]


def find_deployment(name: str) -> ModelDeployment:
    """Find a deployment. Raises a `ValueError` if it is not registered."""
    from helm.benchmark.model_deployment_registry import get_model_deployment

    return get_model_deployment(name)


def find_deployment_of(name: str) -> str | None:
    """Return the deployment that a name of a deployment or a model stands for, or None if HELM knows neither."""
    from helm.benchmark import model_deployment_registry as registry

    try:
        return str(registry.get_model_deployment(name).name)
    except registry.ModelDeploymentNotFoundError:
        return registry.get_default_model_deployment_for_model(name)


def find_client_arguments(deployment: str) -> Mapping[str, Any]:
    """Return the arguments of a deployment's client; none if it is not registered."""
    from helm.benchmark.model_deployment_registry import (
        DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    )

    registered = DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.get(deployment)
    if registered and registered.client_spec:
        return registered.client_spec.args or {}
    return {}


def find_run_spec_function(entry: str) -> Specs | None:
    """Return the function that makes the run specs of an entry. There is none for a name that HELM does not know."""
    from helm.benchmark.run_spec import get_run_spec_function

    function: Specs | None = get_run_spec_function(entry)
    return function


def expander_names() -> Collection[str]:
    """Return the arguments that HELM itself takes from each run entry."""
    from helm.benchmark.run_expander import RUN_EXPANDERS

    return RUN_EXPANDERS.keys()


def load_class(path: str) -> Any:
    """Import the class that a class path names."""
    from helm.common.object_spec import get_class_by_name

    return get_class_by_name(path)


def read_credentials(local_path: Path) -> Mapping[str, Any]:
    """Return the credentials in a folder of configuration. HELM prints the folder."""
    from helm.common.general import get_credentials

    credentials: Mapping[str, Any] = get_credentials(str(local_path))
    return credentials


def register_builtin_models() -> None:
    """Register the models and deployments that HELM comes with."""
    from helm.benchmark.config_registry import (
        register_builtin_configs_from_helm_package,
    )

    register_builtin_configs_from_helm_package()


def register_folder(path: Path) -> None:
    """Register the models and deployments in the YAML files of a folder."""
    from helm.benchmark.config_registry import register_configs_from_directory

    register_configs_from_directory(str(path))


@contextmanager
def show_log() -> Iterator[None]:
    """Let HELM write its log to the terminal in the block, as `helm-run` does."""
    from helm.common.hierarchical_logger import setup_default_logging

    log = logging.getLogger("helm")
    level = log.level
    propagates = log.propagate
    handlers = list(log.handlers)
    setup_default_logging(None)
    try:
        yield
    finally:
        log.setLevel(level)
        log.propagate = propagates
        log.handlers[:] = handlers


def runner_error() -> type[Exception]:
    """Return the class of the error with which HELM's runner ends if runs have failed."""
    from helm.benchmark.runner import RunnerError

    error: type[Exception] = RunnerError
    return error
