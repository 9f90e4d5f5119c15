"""Compares the installed HELM with what this package was written for: its version, and the fields of its records."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "helm.common.request:Request": (
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
    "helm.common.request:RequestResult": (
        "cached",
        "completions",
        "error",
        "error_flags",
        "request_datetime",
        "request_time",
        "success",
    ),
    "helm.common.request:GeneratedOutput": (
        "finish_reason",
        "logprob",
        "text",
        "thinking",
        "tokens",
    ),
    "helm.benchmark.adaptation.request_state:RequestState": (
        "annotations",
        "instance",
        "request",
        "request_mode",
        "result",
        "train_trial_index",
    ),
    "helm.benchmark.adaptation.scenario_state:ScenarioState": (
        "adapter_spec",
        "annotator_specs",
        "request_states",
    ),
    "helm.benchmark.adaptation.adapter_spec:AdapterSpec": (
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
    "helm.benchmark.run_spec:RunSpec": (
        "adapter_spec",
        "annotators",
        "groups",
        "metric_specs",
        "name",
        "scenario_spec",
    ),
    "helm.benchmark.scenarios.scenario:Instance": (
        "extra_data",
        "id",
        "input",
        "references",
        "split",
    ),
    "helm.benchmark.metrics.metric:PerInstanceStats": (
        "instance_id",
        "stats",
        "train_trial_index",
    ),
}
"""The fields of HELM's records that this package reads or sets, by `module:Class`."""


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
    for path, names in fields.items():
        module, _, name = path.partition(":")
        try:
            record = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            yield f"{module} has no {name}"
            continue
        there = {field.name for field in dataclasses.fields(record)}
        missing = [field for field in names if field not in there]
        if missing:
            noun = "fields" if len(missing) > 1 else "field"
            yield f"{name} has no {noun} {', '.join(missing)}"


@cache
def check_records() -> None:
    """Check that HELM's records have the fields that this package uses.

    Raises:
        RuntimeError: they do not. The message names both versions and the fields.
    """
    changes = list(find_changed_records())
    if changes:
        raise RuntimeError(
            f"helm-longctx: this version of HELM is not supported: {'; '.join(changes)}."
            f" Installed is {describe_helm()}"
        )
