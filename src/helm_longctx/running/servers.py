"""Which server a deployment's requests go to: answers of one are not those of another."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from helm.benchmark.model_deployment_registry import get_model_deployment

from helm_longctx.redaction.abbreviation import digest
from helm_longctx.redaction.text import SECRET_NAME

_NOT_OF_THE_MODEL = re.compile(rf"{SECRET_NAME.pattern}|authorization$|^timeout$|^max_retries$", re.IGNORECASE)
"""Arguments of clients that change no answer. A new key asks the same model, and no digest of a key is kept."""

_IN_CREDENTIALS = ("BaseUrl", "Endpoint", "Location", "ProjectId")
"""Names in HELM's credentials file, after the host's, that say where requests go."""

_IN_ENVIRONMENT = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL")
"""Where the providers' libraries look if a deployment names no address."""


def server_digest(deployment: str, credentials: Mapping[str, Any], proxy: str | None = None) -> str:
    """SHA-256 of a deployment's name, its client with its arguments, and its address, without secrets.

    Args:
        deployment: a name that HELM knows.
        credentials: of HELM's credentials file.
        proxy: the address of a HELM server that is asked instead (`--server-url`).

    Raises:
        ValueError: HELM does not know the deployment.
    """
    known = get_model_deployment(deployment)
    arguments = known.client_spec.args or {}
    addresses = {name: credentials.get(f"{known.host_organization}{name}", None) for name in _IN_CREDENTIALS}
    # HELM's own HTTP client prefers its variable to the deployment's address.
    variables = ("HELM_HTTP_MODEL_BASE_URL", *(() if arguments.get("base_url") else _IN_ENVIRONMENT))
    parts = {
        "deployment": known.name,
        "client": known.client_spec.class_name,
        "arguments": arguments,
        "credentials": addresses,
        "environment": {name: os.environ.get(name) for name in variables},
        "proxy": proxy,
    }
    return digest(json.dumps(_without_secrets(parts), sort_keys=True, default=repr))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {str(name): part for name, part in value.items() if not _NOT_OF_THE_MODEL.search(str(name))}
        return {name: _without_secrets(part) for name, part in kept.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_without_secrets(part) for part in value]
    return value.rstrip("/") if isinstance(value, str) else value
