"""Registers the baseline models with HELM."""

from __future__ import annotations

from datetime import date

from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    FULL_FUNCTIONALITY_TEXT_MODEL_TAG,
    TEXT_MODEL_TAG,
    ModelMetadata,
    register_model_metadata,
)

from helm_longctx.models.client import BaselineClient, LexicalClient, NullClient

_MODELS: tuple[tuple[str, str, type[BaselineClient], str], ...] = (
    (
        "longctx/lexical",
        "Lexical baseline",
        LexicalClient,
        "No neural network. It finds the lines of the prompt that share the rarest words with the question and answers"
        " with text from there. A task that it solves needs no understanding.",
    ),
    (
        "longctx/null",
        "Null baseline",
        NullClient,
        "One constant answer for each task, whatever the question. Its score is the floor of the metric.",
    ),
)


def register() -> None:
    """Register `longctx/lexical` and `longctx/null` with HELM. Idempotent."""
    for name, title, client, about in _MODELS:
        if name in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT:
            continue
        register_model_metadata(
            ModelMetadata(
                name=name,
                creator_organization_name="helm-longctx",
                display_name=title,
                description=about,
                access="open",
                release_date=date(2026, 11, 20),
                tags=[TEXT_MODEL_TAG, FULL_FUNCTIONALITY_TEXT_MODEL_TAG],
            )
        )
        client_spec = ClientSpec(f"{client.__module__}.{client.__qualname__}")
        register_model_deployment(ModelDeployment(name=name, client_spec=client_spec))
