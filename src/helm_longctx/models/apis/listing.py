"""Reads the models route of a server: its models, the lengths of their contexts, and when they are shut down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import orjson

from helm_longctx.models.apis.guard import guard_library
from helm_longctx.models.apis.http import response_type
from helm_longctx.models.apis.provider import library_provider

PATIENCE = 20.0
"""Seconds that a models route may take."""

_NEAREST = 5

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


def list_models(client: Any) -> list[ListedModel]:
    """Ask a server for its models.

    Args:
        client: a HELM client on the package of a provider.

    Raises:
        APIError: of the package; the server cannot be reached, or has no such route.
        ValueError: the answer is not a list of models.
    """
    reply = _get(client, "")
    rows = reply.get("data") if isinstance(reply, Mapping) else reply  # Together answers with a bare list
    if not isinstance(rows, list):
        raise ValueError("the models route did not answer with a list")
    return [_model(row) for row in rows if isinstance(row, Mapping) and isinstance(row.get("id"), str)]


def get_model(client: Any, name: str) -> ListedModel:
    """Ask a server for one model. A list can lack aliases and the names of deployments.

    Raises:
        APIError: of the package; the server does not have the model, or has no such route.
        ValueError: the answer is not a model.
    """
    row = _get(client, name)
    if not isinstance(row, Mapping) or "id" not in row:
        raise ValueError("the models route did not answer with a model")
    return _model(row)


def nearest(name: str, names: Sequence[str]) -> str:
    """List the names with the most similar spelling; the first names if none is similar."""
    by_lower = {each.lower(): each for each in names}
    close = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=_NEAREST, cutoff=0.4)]
    return ", ".join(close or names[:_NEAREST])


def _get(client: Any, name: str) -> Any:
    """Ask for a model, or for all models if the name is empty."""
    library, provider = client.client, library_provider(client)
    if provider is None:
        raise ValueError("the client has no models route")
    route = f"{provider.version}/models".removeprefix(provider.address_part)
    path = f"{route}/{name}" if name else f"{route}{provider.models_query}"
    guard_library(library)  # it can be of HELM's own client
    # The package's client is used for its address, key, headers and proxy. The response is raw, because not all servers
    # answer with the package's types.
    patient = library.with_options(timeout=PATIENCE, max_retries=0)
    response = patient.get(path, cast_to=response_type(library))
    return orjson.loads(response.content)


def _model(row: Mapping[str, Any]) -> ListedModel:
    # Some servers send 0 or null for a length that they do not know.
    context = next((row[field] for field in _CONTEXT if isinstance(row.get(field), int) and row[field] > 0), None)
    texts = {field: str(row[field]) for field in ("root", "shutdown_date") if row.get(field)}
    # In vLLM's list `root` is the hub name or the folder, and `id` can be any name.
    return ListedModel(str(row["id"]), context, texts.get("root"), texts.get("shutdown_date"))
