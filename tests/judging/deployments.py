"""Writes deployments of the local server as a user writes them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import yaml


def write_judges(
    folder: Path,
    addresses: dict[str, str | None],
    model: str = "gpt-4o-2024-05-13",
    key: str = "sk-none",
) -> Path:
    """A folder for `--local-path` that knows judges.

    Args:
        addresses: by deployment name, the base address of an OpenAI server; None for an Anthropic server, whose address
            and key HELM's client takes from the environment only.
        model: what each asks the server for.
        key: for OpenAI servers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    deployments = [
        {"name": name, "model_name": name, "client_spec": _client(address, model, key)}
        for name, address in addresses.items()
    ]
    models: list[dict[str, Any]] = [
        {
            "name": name,
            "display_name": name,
            "description": "A judge.",
            "creator_organization_name": "tests",
            "access": "open",
            "release_date": date(2026, 1, 1),
            "tags": ["TEXT_MODEL_TAG", "FULL_FUNCTIONALITY_TEXT_MODEL_TAG"],
        }
        for name in addresses
    ]
    for name, rows in (("model_deployments", deployments), ("model_metadata", models)):
        content = {"models" if name == "model_metadata" else name: rows}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def _client(address: str | None, model: str, key: str) -> dict[str, Any]:
    arguments: dict[str, Any]
    if address is None:
        name = "anthropic_client.AnthropicMessagesClient"
        arguments = {"anthropic_model_name": model}
    else:
        arguments = {
            "base_url": address,
            "api_key": key,
            "openai_model_name": model,
            "max_retries": 0,
        }
        name = "openai_client.OpenAIClient"
    return {"class_name": f"helm.clients.{name}", "args": arguments}
