"""Deployments of local servers, each of which is a model of its own, for commands in this process."""

from __future__ import annotations

from typing import Any

from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    MODEL_NAME_TO_MODEL_METADATA,
    get_unknown_model_metadata,
    register_model_metadata,
)


def register_server(
    name: str,
    address: str,
    form: str = "chat",
    client: str = "OpenAIClient",
    **fields: Any,
) -> None:
    """Register a model and its deployment on a server, in place of one of that name.

    Args:
        name: name of both, with an organization.
        address: address of the server, without the route.
        form: the form of requests that the client sends.
        client: the class of the client; it speaks OpenAI's protocol, or another one.
        fields: further fields of the deployment, such as its window.
    """
    if name not in MODEL_NAME_TO_MODEL_METADATA:
        register_model_metadata(get_unknown_model_metadata(name))
    version = "/v1/" if client == "OpenAIClient" else ""
    arguments = {"base_url": f"{address}{version}", "api_key": "none"} | (
        {} if form == "chat" else {"form": form}
    )
    spec = ClientSpec(f"helm_longctx.models.apis.{client}", arguments)
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name=name, **fields)
    )
