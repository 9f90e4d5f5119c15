"""Judges over our clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import SqliteCacheBackendConfig

from helm_longctx.judging.judge import JudgeRequest, find_judges

REQUEST = JudgeRequest(
    "Is it?",
    lambda reply: {"score": reply},
    max_tokens=10,
    temperature=0.1,
    top_p=0.9,
    seed=42,
)


def deploy(name: str, client: str, **arguments: Any) -> str:
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    spec = ClientSpec(f"helm_longctx.models.apis.{client}", arguments)
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical")
    )
    return name


def ask(name: str, folder: Path, system: str = "") -> Any:
    client = AutoClient({}, str(folder), SqliteCacheBackendConfig(str(folder)))
    (judge,) = find_judges(name, client)
    return judge.ask(replace(REQUEST, system=system))
