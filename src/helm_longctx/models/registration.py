"""The baseline models in HELM's registries."""

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
        "No neural network: it finds the lines of the prompt that share the rarest words with the question, and answers"
        " what stands there. What it solves needs no reading.",
    ),
    (
        "longctx/null",
        "Null baseline",
        NullClient,
        "One constant answer for each task, whatever the prompt says: the floor, or what the metric gives for free.",
    ),
)


def register() -> None:
    """Make HELM know `longctx/lexical` and `longctx/null`. Idempotent."""
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
