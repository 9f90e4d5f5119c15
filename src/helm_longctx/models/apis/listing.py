"""Reads the models route of a server: its models, the lengths of their contexts, and when they are shut down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

PATIENCE = 20.0
"""Seconds that a models route may take."""

_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens")
"""Fields with the length of a context in tokens, in this order: vLLM, SGLang and NIM; OpenRouter and Together; Groq;
Mistral; Anthropic."""


@dataclass(frozen=True)
class ListedModel:
    """A model on a server.

    Args:
        name: the model's name in requests.
        context: the length of the context in tokens, output included; None if the server does not say it.
        source: the hub name or the folder of the weights; None if the server does not say it.
        shutdown: the day of the shutdown, as the server writes it; None if none is announced.
    """

    name: str
    context: int | None = None
    source: str | None = None
    shutdown: str | None = None


def list_models(library: Any) -> list[ListedModel]:
    """Ask a server for its models.

    Args:
        library: the client of the package `openai` or `anthropic`.

    Raises:
        openai.APIError, anthropic.APIError: the server cannot be reached, or has no such route.
        ValueError: the answer is not a list of models.
    """
    # A page of Anthropic's list has 20 models by default and at most 1,000.
    path = "/v1/models?limit=1000" if _is_anthropic(library) else "/models"
    reply = _get(library, path)
    rows = reply.get("data") if isinstance(reply, Mapping) else reply  # Together answers with a bare list
    if not isinstance(rows, list):
        raise ValueError("the models route did not answer with a list")
    return [_model(row) for row in rows if isinstance(row, Mapping) and isinstance(row.get("id"), str)]


def get_model(library: Any, name: str) -> ListedModel:
    """Ask a server for one model. A list can lack aliases and the names of deployments.

    Raises:
        openai.APIError, anthropic.APIError: the server does not have the model, or has no such route.
        ValueError: the answer is not a model.
    """
    row = _get(library, f"{'/v1' if _is_anthropic(library) else ''}/models/{name}")
    if not isinstance(row, Mapping) or "id" not in row:
        raise ValueError("the models route did not answer with a model")
    return _model(row)


def _is_anthropic(library: Any) -> bool:
    return type(library).__module__.partition(".")[0] == "anthropic"


def _get(library: Any, path: str) -> Any:
    import httpx

    # The package's client is used for its address, key, headers and proxy. The response is raw, because not all servers
    # answer with the package's types.
    response = library.with_options(timeout=PATIENCE, max_retries=0).get(path, cast_to=httpx.Response)
    return orjson.loads(response.content)


def _model(row: Mapping[str, Any]) -> ListedModel:
    # Some servers send 0 or null for a length that they do not know.
    context = next((row[field] for field in _CONTEXT if isinstance(row.get(field), int) and row[field] > 0), None)
    texts = {field: str(row[field]) for field in ("root", "shutdown_date") if row.get(field)}
    # In vLLM's list `root` is the hub name or the folder, and `id` can be any name.
    return ListedModel(str(row["id"]), context, texts.get("root"), texts.get("shutdown_date"))
