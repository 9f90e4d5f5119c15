"""Finds out what a server offers: its models, the forms of prompts that it answers, and the length of its context."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.failures import Failure
from helm_longctx.helm_api import BlackHoleCacheConfig
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.availability import (
    Availability,
    ListedModel,
    ask_model,
    list_available,
    nearest,
    tiny_request,
)
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.oauth import find_tokens
from helm_longctx.models.apis.provider import Provider, find_provider, providers
from helm_longctx.redaction.text import redact

_Route = str
"""A form of requests, such as `chat`: a key of `Provider.routes`."""


class KeyRefusedError(InputError):
    """A server refuses the key, or needs one."""


@dataclass(frozen=True)
class ProbedEndpoint:
    """A model on a server, with what the server says about it.

    Args:
        url: the base address, in the form that the official packages take.
        context: tokens of prompt and output together, if the server says it.
        source: hub name or folder of the weights, if the server says it.
        refused: parameters of HELM's requests that the server refuses, each with what is sent instead.
        token_env: start of the names of the variables of an OAuth client.
    """

    url: str
    api: str
    model: str
    routes: tuple[_Route, ...]
    context: int | None = None
    source: str | None = None
    refused: tuple[str, ...] = ()
    api_key_env: str | None = None
    token_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    nvcf: bool = False
    key: str | None = field(default=None, repr=False)

    @property
    def provider(self) -> Provider:
        """The record of the protocol."""
        return find_provider(self.api)

    def client_spec(self) -> dict[str, Any]:
        """Return the `client_spec` of a HELM deployment."""
        has_forms = len(self.provider.routes) > 1
        if has_forms:
            form = "both" if len(self.routes) > 1 else self.routes[0]
        else:
            form = None
        optional = {}
        for name in ("api_key_env", "token_env", "headers", "nvcf"):
            optional[name] = getattr(self, name)
        optional = {
            "form": form,
            **optional,
            "headers": dict(self.headers),
        }
        given = {}
        for name, value in optional.items():
            if value:
                given[name] = value
        return {
            "class_name": self.provider.client_path,
            "args": {
                "base_url": self.url,
                "model": self.model,
                **given,
            },
        }


def probe(
    url: str,
    *,
    name: str = "",
    model: str | None = None,
    api: str = "openai",
    kind: str | None = None,
    api_key_env: str | None = None,
    token_env: str | None = None,
    headers: Mapping[str, str] | None = None,
    nvcf: bool = False,
) -> ProbedEndpoint:
    """Ask a server for its models, and send one tiny request for each style of prompts.

    Args:
        url: the address, with or without the route (`/v1/chat/completions`).
        name: the user's name for the model. If `model` is None, it is looked up among the server's models.
        model: the model's name in requests.
        kind: the forms to use (`Provider.forms`), or None for all that the server answers.
        api: the protocol, by the name of a provider.
        api_key_env: name of the environment variable with the key; None to send no key.
        token_env: start of the names of the variables of an OAuth client.
        nvcf: whether the address is a function in NVIDIA Cloud Functions.

    Raises:
        KeyRefusedError: the server refuses the key, or needs one.
        InputError: the server cannot be reached, does not have the model, answers no such style, or chats without a
            word.
    """
    endpoint = ProbedEndpoint(
        url=base_url(url, api),
        api=api,
        model=model or "",
        routes=(),
        api_key_env=api_key_env,
        token_env=token_env,
        headers=headers or {},
        nvcf=nvcf,
    )
    return ask_server(endpoint, name, kind)


def ask_server(
    described: ProbedEndpoint,
    name: str,
    kind: str | None,
) -> ProbedEndpoint:
    """Return an endpoint with what its server says about it, as `probe` does.

    Args:
        described: how the server is reached, and the model's name in requests, if it is known. The rest is asked for.

    Raises:
        KeyRefusedError, InputError: as `probe`.
    """
    provider = described.provider
    if kind is not None and kind not in provider.forms:
        raise bad_argument("endpoint", "type", kind, provider.forms)
    endpoint = replace(described, routes=tuple(provider.routes))
    models, state = list_available(make_client(endpoint))
    if state.failure is Failure.BAD_KEY:
        raise _key_error(endpoint, state.reason)
    if state.failure is Failure.UNREACHABLE:
        raise InputError(f"{endpoint.url} cannot be reached: {state.reason}")
    choice = _choose(endpoint, name, models)
    endpoint = replace(
        endpoint,
        model=choice.name,
        context=choice.context,
        source=choice.source,
    )
    # Both forms are tried even if the user names one, so that the error can say which one the server answers.
    replies = {}
    for route in provider.routes:
        replies[route] = _ask(endpoint, route)
    results = {}
    for route, (result, _) in replies.items():
        results[route] = result
    answered = tuple(route for route, result in results.items() if result.exists)
    if not answered:
        raise _no_answer(endpoint, list(results.values()), models)
    # The name may be an alias, or a mistake that the server overlooks.
    names = [listed.name for listed in models]
    if names and endpoint.model not in names:
        helm_log.warning(
            f"{endpoint.url} answers to model={endpoint.model!r} but does not list it; listed: "
            + nearest(endpoint.model, names)
        )
    routes = _select_routes(kind, answered, results)
    _check_words(endpoint, routes, results)
    refused: dict[str, None] = {}
    for route in routes:
        refused |= dict.fromkeys(replies[route][1])
    return replace(endpoint, routes=routes, refused=tuple(refused))


def base_url(url: str, api: str) -> str:
    """Return an address in the form that the provider's package takes: without a route, with or without `/v1`.

    Raises an `InputError` if `url` is not an address, or contains a password or a query.
    """
    try:
        parts = urlsplit(url.strip())
        is_odd = (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.port == 0
        )
    except ValueError:  # brackets or a port that are none
        is_odd = True
    if is_odd or parts.query or "@" in parts.netloc:
        raise bad_argument(
            "endpoint",
            "url",
            redact(url),
            "an http:// or https:// address without a password and without ?query",
        )
    # Users copy routes from examples, but the clients add them. The longest comes first, because a route can end with
    # another one.
    routes = {"/models"}
    for known in providers().values():
        routes.update(
            route.removeprefix(known.version) for route in known.routes.values()
        )
    ends = sorted(routes, key=len, reverse=True)
    path = parts.path.rstrip("/")
    path = path.removesuffix(next(filter(path.endswith, ends), "")).rstrip("/")
    provider = find_provider(api)
    if not provider.address_has_version:
        path = path.removesuffix(provider.version)
    elif not path:
        path = provider.version
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def make_client(endpoint: ProbedEndpoint) -> ProviderClient:
    """Return the client that runs use for an endpoint, without a request cache."""
    return endpoint.provider.client(
        BlackHoleCacheConfig(), endpoint.key, **endpoint.client_spec()["args"]
    )


def _choose(
    endpoint: ProbedEndpoint,
    name: str,
    models: list[ListedModel],
) -> ListedModel:
    by_name = {listed.name: listed for listed in models}
    # HELM's names start with an organization. A server need not know it.
    if endpoint.model:
        guesses = [endpoint.model]
    else:
        guesses = [name, name.partition("/")[2]]
    for guess in guesses:
        if guess in by_name:
            return by_name[guess]
    # A name that is not listed may be an alias; the tiny requests will show it.
    if endpoint.model or not models:
        return ListedModel(endpoint.model or guesses[-1])
    if len(models) == 1:
        return models[0]
    similar = nearest(name, list(by_name))
    raise InputError(
        f"model is missing, and {endpoint.url} has {len(models)} models; name one of"
        f" them, such as {similar}, with --model (helm-longctx run: --model-name, or in"
        " YAML the model's key `model`)"
    )


def _check_words(
    endpoint: ProbedEndpoint,
    routes: tuple[_Route, ...],
    results: Mapping[_Route, Availability],
) -> None:
    """Refuse a model that has no word in a chat where it is asked for one, because all scores would be 0.

    A model that only continues texts can have nothing to add to a request, so an empty completion is only a warning.
    """
    silent = []
    for route in routes:
        if results[route].is_silent:
            silent.append(route)
    said = f"{endpoint.url} answers a request for one word to {endpoint.model!r} with an empty text"
    if "chat" in silent:
        other = "completions" in results and results["completions"].exists
        if other:
            instead = ", or use the model for completions alone (type: completions)"
        else:
            instead = ""
        raise InputError(
            f"{said} ({' and '.join(silent)}); check its weights and its chat template{instead}"
        )
    if silent:
        helm_log.warning(
            f"{said} ({' and '.join(silent)}); if it does so in a run, scores are 0:"
            " check its weights"
        )


def _ask(endpoint: ProbedEndpoint, route: _Route) -> tuple[Availability, list[str]]:
    """Send one tiny request with the parameters of HELM's requests. Also return the parameters that are refused."""
    client = make_client(replace(endpoint, routes=(route,)))
    name = f"endpoint/{endpoint.model}"
    tiny = replace(tiny_request(name, name), temperature=0.0)
    # Some models refuse the parameter of stop sequences.
    availability = ask_model(client, replace(tiny, stop_sequences=["\n\n\n"]))
    if availability.is_silent:  # perhaps because the answer starts with empty lines
        availability = ask_model(client, tiny)
    return availability, [str(change) for change in client.parameters.changes]


def _select_routes(
    kind: str | None,
    routes: tuple[_Route, ...],
    results: Mapping[_Route, Availability],
) -> tuple[_Route, ...]:
    if kind is None:
        return routes
    wanted = tuple(route for route in results if kind in (route, "both"))
    for route in wanted:
        if route not in routes:
            raise InputError(
                f"type={kind!r}: the server does not answer {route} ({results[route].reason});"
                f" give {' or '.join(routes)}"
            )
    return wanted


def _no_answer(
    endpoint: ProbedEndpoint,
    results: list[Availability],
    models: list[ListedModel],
) -> InputError:
    kinds = [result.failure for result in results]
    if Failure.BAD_KEY in kinds:
        return _key_error(endpoint, results[kinds.index(Failure.BAD_KEY)].reason)
    # Servers answer a request to an unknown model in many ways, so a model that is not listed counts as unknown.
    names = [listed.name for listed in models]
    if Failure.UNKNOWN_MODEL in kinds or (names and endpoint.model not in names):
        allowed = ""
        if names:
            allowed = (
                f"; give one of its models, such as {nearest(endpoint.model, names)}"
            )
        said = results[0]
        if Failure.UNKNOWN_MODEL in kinds:
            said = results[kinds.index(Failure.UNKNOWN_MODEL)]
        return InputError(
            f"model={endpoint.model!r}: {endpoint.url} does not have this model"
            f" ({said.reason}){allowed}"
        )
    return InputError(
        f"{endpoint.url} does not answer a tiny request to {endpoint.model!r}: {results[0].reason}"
    )


def _key_error(endpoint: ProbedEndpoint, reason: str) -> KeyRefusedError:
    if endpoint.api_key_env:
        return KeyRefusedError(
            f"api_key_env={endpoint.api_key_env!r}: {endpoint.url} refuses the key in this variable"
        )
    prefix = endpoint.token_env or endpoint.provider.key_prefix
    if endpoint.provider.client.takes_tokens and find_tokens(prefix):
        return KeyRefusedError(
            f"{endpoint.url} cannot be used with {prefix}_CLIENT_ID: {reason}"
        )
    return KeyRefusedError(
        f"api_key_env is missing, and {endpoint.url} needs a key; give the name of the"
        " environment variable that holds the key"
    )
