"""Deployments of local servers that a run in this process can use."""

from __future__ import annotations

from typing import Any

from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)

ENTRY = "helmet_recall:length=8k,num_samples=3,style=chat,model=longctx/lexical,model_deployment="
"""Twelve requests, as chats also where a client takes completions."""


def register(
    name: str, address: str, client: str = "OpenAIClient", **arguments: Any
) -> None:
    """A deployment of `longctx/lexical`; one of that name goes.

    Args:
        address: the base address of a server that speaks OpenAI's protocol.
        client: HELM's, by its class.
        arguments: of the client.
    """
    arguments = {
        "base_url": address,
        "api_key": "sk-none",
        "max_retries": 0,
        **arguments,
    }
    spec = ClientSpec(f"helm.clients.openai_client.{client}", arguments)
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical")
    )
