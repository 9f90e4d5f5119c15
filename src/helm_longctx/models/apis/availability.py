"""Checks whether the model of a deployment exists: by a tiny request, or in the list of its server.

A list costs nothing, but it can be wrong: hosts list models that they do not serve, Azure lists models instead of
deployments, and some servers have no list.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm_api import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    AutoClient,
    BlackHoleCacheBackendConfig,
    Client,
    Request,
    get_model_deployment,
)
from helm_longctx.models.apis.oauth import TokenError
from helm_longctx.models.apis.prices import list_request_names
from helm_longctx.models.apis.provider import ApiClient, library_provider
from helm_longctx.models.apis.sending import try_once
from helm_longctx.models.apis.transport import guard_library, http_library, package_of
from helm_longctx.models.results import answer_of
from helm_longctx.redaction.abbreviation import abbreviate, describe_error
from helm_longctx.redaction.text import redact

PROMPT = "Reply with the word yes."

_FEWEST_TOKENS = 16
"""The smallest output limit that OpenAI's newer models accept."""

_MISSING = (Failure.UNKNOWN_MODEL, Failure.BAD_KEY)
"""Failures after which no later request can succeed. All others may pass, or say nothing about the model."""

PATIENCE = 20.0
"""Seconds that a models route may take."""

_NEAREST = 5

_CONTEXT = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
)
"""Fields with the length of a context in tokens, in this order: vLLM, SGLang and NIM; OpenRouter and Together; Groq;
Mistral; Anthropic; llama.cpp, in `meta`."""


@dataclass(frozen=True)
class ListedModel:
    """A model on a server; None stands for what the server does not say.

    Args:
        source: the hub name or the folder of the weights.
        shutdown: the day of the shutdown, as the server writes it.
    """

    name: str
    context: int | None = None
    source: str | None = None
    shutdown: str | None = None


@dataclass(frozen=True)
class Availability:
    """Whether a model exists.

    Args:
        failure: why it did not answer, or is not known to exist, or None if it exists.
        reason: the text of the failure, without secrets and prompts.
        listed: what the server's list says about the model, or None if it was not looked up.
        is_silent: whether it answered with an empty text, and did not reason.
    """

    failure: Failure | None = None
    reason: str = ""
    listed: ListedModel | None = None
    is_silent: bool = False

    @property
    def exists(self) -> bool | None:
        """Whether the model exists and the key is right, or None if that is unknown."""
        if self.failure is None:
            return True
        if self.failure in _MISSING:
            return False
        return None


def tiny_request(
    model: str,
    deployment: str,
    messages: list[dict[str, str]] | None = None,
) -> Request:
    """Return a request that costs next to nothing. `messages` come before its prompt."""
    return Request(
        model,
        deployment,
        prompt=PROMPT,
        messages=messages,
        max_tokens=_FEWEST_TOKENS,
    )


def ask_model(client: Client, request: Request) -> Availability:
    """Send a tiny request once, and return what its result says about the model.

    Raises an `InputError` if the client cannot be used, for example because a package is missing.
    """
    answer = answer_of(try_once(client.make_request, request).result)
    if answer.failure is not None:
        return Availability(
            answer.failure, abbreviate(redact(" ".join(str(answer.problem).split())))
        )
    is_silent = answer.is_empty and answer.thinking is None
    return Availability(None, "", is_silent=is_silent)


def list_models(client: Any) -> list[ListedModel]:
    """Ask a server for its models.

    Raises:
        APIError: of the package; the server cannot be reached, or has no such route.
        ValueError: the answer is not a list of models.
    """
    reply = _get(client, "")
    rows = (
        reply.get("data") if isinstance(reply, Mapping) else reply
    )  # Together answers with a bare list
    if not isinstance(rows, list):
        raise ValueError("the models route did not answer with a list")
    models = []
    for row in rows:
        if isinstance(row, Mapping) and isinstance(row.get("id"), str):
            models.append(_model(row))
    return models


def list_available(client: Any) -> tuple[list[ListedModel], Availability]:
    """Return the models in the list of a server, and why there is no list; see `list_models`."""
    try:
        return list_models(client), Availability()
    except Exception as error:  # of the package, of its HTTP library or of a parser
        status = getattr(error, "status_code", None)
        # Only 401 means that the key is wrong. Some servers answer 403 or 404 because they have no models route.
        if status == 401:
            kind = Failure.BAD_KEY
        else:
            kind = Failure.UNKNOWN
        # Without a status there was no response.
        if isinstance(error, TokenError):
            kind = error.kind
        elif status is None and not isinstance(error, ValueError | InputError):
            kind = Failure.UNREACHABLE
        # The cause of a connection error says more than the error.
        if isinstance(error, InputError):
            cause: BaseException = error
        else:
            cause = error.__cause__ or error
        return [], Availability(kind, describe_error(cause))


def look_up(client: Any, name: str, models: Sequence[ListedModel]) -> Availability:
    """Return what a server with a list says about a model.

    Args:
        models: the list. A model that it lacks is looked up by its name, because lists can lack aliases and the names
            of deployments.
    """
    if listed := next((model for model in models if model.name == name), None):
        return Availability(listed=listed)
    try:
        row = _get(client, name)
        if not isinstance(row, Mapping) or "id" not in row:
            raise ValueError
        return Availability(listed=_model(row))
    except Exception as error:  # of the package, of its HTTP library or of a parser
        if getattr(error, "status_code", None) != 404:
            return Availability(Failure.UNKNOWN, "the list may be incomplete")
        return Availability(
            Failure.UNKNOWN_MODEL,
            f"it has {nearest(name, [model.name for model in models])}",
        )


def nearest(name: str, names: Sequence[str]) -> str:
    """List the names with the most similar spelling; the first names if none is similar."""
    by_lower = {}
    for listed_name in names:
        by_lower[listed_name.lower()] = listed_name
    close = []
    for close_match in get_close_matches(
        name.lower(), by_lower, n=_NEAREST, cutoff=0.4
    ):
        close.append(by_lower[close_match])
    return ", ".join(close or names[:_NEAREST])


def _get(client: Any, name: str) -> Any:
    """Ask for a model, or for all models if the name is empty."""
    provider = library_provider(client)
    if provider is None:
        raise ValueError("the client has no models route")
    route = f"{provider.version}/models".removeprefix(provider.address_part)
    if name:
        path = f"{route}/{name}"
    else:
        path = f"{route}{provider.models_query}"
    library = client.client
    if not isinstance(client, ApiClient):
        library = guard_library(library)
    # The package's client is used for its address, key, headers and proxy. The response is raw, because not all servers
    # answer with the package's types.
    patient = library.with_options(timeout=PATIENCE, max_retries=0)
    raw = http_library(package_of(library)).Response
    return orjson.loads(patient.get(path, cast_to=raw).content)


def _model(row: Mapping[str, Any]) -> ListedModel:
    meta = row.get("meta")
    lengths = row
    if isinstance(meta, Mapping):
        lengths = {**meta, **row}
    # Some servers send 0 or null for a length that they do not know.
    context = None
    for field in _CONTEXT:
        length = lengths.get(field)
        if isinstance(length, int) and length > 0:
            context = length
            break
    texts = {}
    for field in ("root", "shutdown_date"):
        if row.get(field):
            texts[field] = str(row[field])
    # In vLLM's list `root` is the hub name or the folder, and `id` can be any name.
    return ListedModel(
        name=str(row["id"]),
        context=context,
        source=texts.get("root"),
        shutdown=texts.get("shutdown_date"),
    )


def check_models(
    names: Iterable[str],
    credentials: Mapping[str, Any],
    storage: str,
) -> Iterator[tuple[bool | None, str]]:
    """Ask the providers of deployments whether they have the models. Nothing is generated.

    Yields:
        Whether a model exists, None if that is unknown, and a line of text about it. It is unknown if a key is missing
        or a provider cannot be reached.
    """
    # HELM makes the clients, so address, key and headers are the same as in a run.
    clients = AutoClient(credentials, storage, BlackHoleCacheBackendConfig())
    lists: dict[tuple[str, str], tuple[list[ListedModel], Availability]] = {}
    for name in names:
        try:
            client = clients._get_client(name)
        except (
            Exception
        ) as error:  # clients raise many kinds for a missing key or package
            yield None, f"{name} was not checked: {describe_error(error)}"
            continue
        if library_provider(client) is None:
            yield None, f"{name} was not checked: its client has no models route"
            continue
        # The models that a provider lists depend on the account, so there is a list for each address and key.
        address = (str(client.client.base_url), str(client.client.api_key))
        if address not in lists:
            lists[address] = list_available(client)
        yield _check(name, client, *lists[address])


def _check(
    name: str,
    client: Any,
    models: list[ListedModel],
    state: Availability,
) -> tuple[bool | None, str]:
    server = client.client.base_url
    deployment = get_model_deployment(name)
    if state.failure is Failure.BAD_KEY:
        return False, f"{name}: {server} refuses the key"
    if state.failure is not None:
        return None, f"{name} was not checked: {server}: {state.reason}"
    model = list_request_names(deployment)[0]
    availability = look_up(client, model, models)
    if availability.exists is None:
        return None, f"{name} is not in the list of {server}, which may be incomplete"
    if availability.listed is None:
        return (
            False,
            f"{name}: {server} does not have the model {model}; {availability.reason}",
        )
    return True, f"{name} exists" + (
        f" until {availability.listed.shutdown}" if availability.listed.shutdown else ""
    )


def read_names(folder: Path) -> list[str]:
    """Return the names of the deployments in a folder's model_deployments.yaml; an empty list without this file."""
    path = folder / "model_deployments.yaml"
    if path.is_file():
        rows = read_yaml(path)["model_deployments"]
    else:
        rows = []
    return [str(row["name"]) for row in rows]


def has_key(name: str, credentials: Mapping[str, Any]) -> bool:
    """Whether `name` is a deployment whose key is set in the environment or in HELM's credentials."""
    deployment = DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.get(name)
    if deployment is None:
        return False
    host = deployment.host_organization
    # HELM's credentials and the variables of most packages are named after the host organization.
    variable = deployment.client_spec.args.get("api_key_env", f"{host.upper()}_API_KEY")
    return bool(os.environ.get(variable)) or f"{host}ApiKey" in credentials
