"""What of HELM passes through the rooms: its types, and the functions that name and find them.

Only the room `helm`, and modules that change or replace a part of HELM, import HELM itself. A name is looked up when it
is imported. One that the installed HELM does not have ends in one line with both versions, and so do missing fields.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from helm_longctx.errors import UnsupportedHelmError

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec as AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState as RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState as ScenarioState
    from helm.benchmark.annotation.annotator import AnnotatorSpec as AnnotatorSpec
    from helm.benchmark.config_registry import (
        register_builtin_configs_from_helm_package as register_builtin_configs_from_helm_package,
    )
    from helm.benchmark.config_registry import (
        register_configs_from_directory as register_configs_from_directory,
    )
    from helm.benchmark.metrics.metric import PerInstanceStats as PerInstanceStats
    from helm.benchmark.metrics.statistic import Stat as Stat
    from helm.benchmark.model_deployment_registry import (
        DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    )
    from helm.benchmark.model_deployment_registry import (
        ModelDeployment as ModelDeployment,
    )
    from helm.benchmark.model_deployment_registry import (
        get_model_deployment as get_model_deployment,
    )
    from helm.benchmark.model_metadata_registry import get_all_models as get_all_models
    from helm.benchmark.run_spec import RunSpec as RunSpec
    from helm.benchmark.run_spec import get_run_spec_function as get_run_spec_function
    from helm.benchmark.runner import RunnerError as RunnerError
    from helm.benchmark.runner import (
        get_benchmark_output_path as get_benchmark_output_path,
    )
    from helm.benchmark.scenarios.scenario import Input as Input
    from helm.benchmark.scenarios.scenario import Instance as Instance
    from helm.benchmark.scenarios.scenario import Scenario as Scenario
    from helm.clients.auto_client import AutoClient as AutoClient
    from helm.clients.client import CachingClient as CachingClient
    from helm.clients.client import Client as Client
    from helm.common.cache import BlackHoleCacheConfig as BlackHoleCacheConfig
    from helm.common.cache import CacheConfig as CacheConfig
    from helm.common.cache_backend_config import (
        BlackHoleCacheBackendConfig as BlackHoleCacheBackendConfig,
    )
    from helm.common.cache_backend_config import (
        SqliteCacheBackendConfig as SqliteCacheBackendConfig,
    )
    from helm.common.context import Context as Context
    from helm.common.general import asdict_without_nones as asdict_without_nones
    from helm.common.general import get_credentials as get_credentials
    from helm.common.hierarchical_logger import (
        setup_default_logging as setup_default_logging,
    )
    from helm.common.local_context import LocalContext as LocalContext
    from helm.common.object_spec import get_class_by_name as get_class_by_name
    from helm.common.request import ErrorFlags as ErrorFlags
    from helm.common.request import GeneratedOutput as GeneratedOutput
    from helm.common.request import Request as Request
    from helm.common.request import RequestResult as RequestResult
    from helm.common.request import Thinking as Thinking
    from helm.common.request import Token as Token
    from helm.proxy.retry import NonRetriableException as NonRetriableException
    from helm.proxy.services.service import CACHE_DIR as CACHE_DIR

_NAMES: Mapping[str, tuple[str, ...]] = {
    "helm.benchmark.adaptation.adapter_spec": ("AdapterSpec",),
    "helm.benchmark.adaptation.request_state": ("RequestState",),
    "helm.benchmark.adaptation.scenario_state": ("ScenarioState",),
    "helm.benchmark.annotation.annotator": ("AnnotatorSpec",),
    "helm.benchmark.config_registry": (
        "register_builtin_configs_from_helm_package",
        "register_configs_from_directory",
    ),
    "helm.benchmark.metrics.metric": ("PerInstanceStats",),
    "helm.benchmark.metrics.statistic": ("Stat",),
    "helm.benchmark.model_deployment_registry": (
        "DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT",
        "ModelDeployment",
        "get_model_deployment",
    ),
    "helm.benchmark.model_metadata_registry": ("get_all_models",),
    "helm.benchmark.run_spec": (
        "RunSpec",
        "get_run_spec_function",
    ),
    "helm.benchmark.runner": (
        "RunnerError",
        "get_benchmark_output_path",
    ),
    "helm.benchmark.scenarios.scenario": (
        "Input",
        "Instance",
        "Scenario",
    ),
    "helm.clients.auto_client": ("AutoClient",),
    "helm.clients.client": (
        "CachingClient",
        "Client",
    ),
    "helm.common.cache": (
        "BlackHoleCacheConfig",
        "CacheConfig",
    ),
    "helm.common.cache_backend_config": (
        "BlackHoleCacheBackendConfig",
        "SqliteCacheBackendConfig",
    ),
    "helm.common.context": ("Context",),
    "helm.common.general": (
        "asdict_without_nones",
        "get_credentials",
    ),
    "helm.common.hierarchical_logger": ("setup_default_logging",),
    "helm.common.local_context": ("LocalContext",),
    "helm.common.object_spec": ("get_class_by_name",),
    "helm.common.request": (
        "ErrorFlags",
        "GeneratedOutput",
        "Request",
        "RequestResult",
        "Thinking",
        "Token",
    ),
    "helm.proxy.retry": ("NonRetriableException",),
    "helm.proxy.services.service": ("CACHE_DIR",),
}
"""The names, by HELM's module that has them."""

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Request": (
        "echo_prompt",
        "max_tokens",
        "messages",
        "model",
        "model_deployment",
        "num_completions",
        "prompt",
        "random",
        "response_format",
        "stop_sequences",
        "temperature",
        "top_p",
    ),
    "RequestResult": (
        "cached",
        "completions",
        "error",
        "error_flags",
        "request_datetime",
        "request_time",
        "success",
    ),
    "GeneratedOutput": (
        "finish_reason",
        "logprob",
        "text",
        "thinking",
        "tokens",
    ),
    "RequestState": (
        "annotations",
        "instance",
        "request",
        "request_mode",
        "result",
        "train_trial_index",
    ),
    "ScenarioState": (
        "adapter_spec",
        "annotator_specs",
        "request_states",
    ),
    "AdapterSpec": (
        "max_eval_instances",
        "max_tokens",
        "method",
        "model",
        "model_deployment",
        "num_outputs",
        "num_train_trials",
        "stop_sequences",
        "temperature",
    ),
    "RunSpec": (
        "adapter_spec",
        "annotators",
        "groups",
        "metric_specs",
        "name",
        "scenario_spec",
    ),
    "Instance": (
        "extra_data",
        "id",
        "input",
        "references",
        "split",
    ),
    "PerInstanceStats": (
        "instance_id",
        "stats",
        "train_trial_index",
    ),
}
"""The fields of HELM's records that this package reads or sets."""


def _list_modules() -> dict[str, str]:
    """Return HELM's module of each name."""
    modules = {}
    for module, names in _NAMES.items():
        for name in names:
            modules[name] = module
    return modules


_MODULES = _list_modules()


def _find(name: str) -> Any:
    return getattr(importlib.import_module(_MODULES[name]), name)


# Type checkers read the imports above, and find misspelt names.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return _find(name)
        except (ImportError, AttributeError) as error:
            module = _MODULES[name]
            raise refuse_helm(f"{module} has no {name}") from error


def describe_helm() -> str:
    """Describe both versions, such as "crfm-helm 0.7.0, but helm-longctx 1.0.0 needs crfm-helm<0.6,>=0.5.16"."""
    ours = metadata.version("helm-longctx")
    theirs = metadata.version("crfm-helm")
    needed = requirements()["crfm-helm"]
    return f"crfm-helm {theirs}, but helm-longctx {ours} needs {needed}"


@cache
def requirements() -> Mapping[str, Requirement]:
    """Return what this package requires of others, by their names. Extras are left out."""
    lines = metadata.requires("helm-longctx") or []
    every = [Requirement(line) for line in lines]
    return {one.name: one for one in every if one.marker is None}


def find_changed_records(
    fields: Mapping[str, tuple[str, ...]] = _FIELDS,
) -> Iterator[str]:
    """Yield what the installed HELM lacks of its records, such as "RequestState has no field result"."""
    for name, names in fields.items():
        try:
            record = _find(name)
        except (ImportError, AttributeError):
            yield f"{_MODULES[name]} has no {name}"
            continue
        there = {field.name for field in dataclasses.fields(record)}
        missing = []
        for field in names:
            if field not in there:
                missing.append(field)
        if missing:
            noun = "fields" if len(missing) > 1 else "field"
            yield f"{name} has no {noun} {', '.join(missing)}"


@cache
def check_records() -> None:
    """Check that HELM's records have the fields that this package uses.

    Raises:
        UnsupportedHelmError: they do not. The message names both versions and the fields.
    """
    changes = list(find_changed_records())
    if changes:
        raise refuse_helm("; ".join(changes))


def refuse_helm(change: str) -> UnsupportedHelmError:
    """Return the error for a HELM that has changed, such as "RequestState has no field result"."""
    return UnsupportedHelmError(
        f"this HELM is not supported, because {change}; installed is {describe_helm()}."
        " Install a version in this range"
    )
