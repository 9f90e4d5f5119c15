"""Finds out what a server offers: its models, the forms of prompts that it answers, and the length of its context."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from helm.common.cache import BlackHoleCacheConfig
from helm.common.hierarchical_logger import hwarn
from helm.common.request import Request, RequestResult

from helm_longctx.apis import AnthropicClient, OpenAIClient
from helm_longctx.endpoints.listing import ListedModel, list_models
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.failures import Failure, failure_of_text
from helm_longctx.redaction.text import redact

Api = Literal["openai", "anthropic"]
Route = Literal["chat", "completions"]

CLIENTS = {"openai": OpenAIClient, "anthropic": AnthropicClient}

TYPES = ("chat", "completions", "both")

_ROUTE = re.compile(r"(/chat/completions|/completions|/messages|/models)?/*$")
"""Ends of addresses that users copy from examples. They are removed, because the clients add them."""

_QUESTION = "Say yes."
_MAX_TOKENS = 16
"""The fewest output tokens that OpenAI accepts."""

_NEAREST = 5


@dataclass(frozen=True)
class Endpoint:
    """A model on a server, with what the server says about it.

    Args:
        url: the base address, in the form that the official packages take.
        model: the model's name in requests.
        routes: the forms of requests that are used.
        context: tokens of prompt and output together; None if the server does not say it.
        source: hub name or folder of the weights; None if the server does not say it.
        refused: parameters of HELM's requests that the server refuses, each with what is sent instead.
        api_key_env: name of the environment variable with the key.
        nvcf: whether the address is a function in NVIDIA Cloud Functions.
    """

    url: str
    api: Api
    model: str
    routes: tuple[Route, ...]
    context: int | None = None
    source: str | None = None
    refused: tuple[str, ...] = ()
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    nvcf: bool = False

    def client_spec(self) -> dict[str, Any]:
        """Return the `client_spec` of a HELM deployment."""
        form = {"form": "both" if len(self.routes) > 1 else self.routes[0]} if self.api == "openai" else {}
        key = {"api_key_env": self.api_key_env} if self.api_key_env else {}
        headers = {"headers": dict(self.headers)} if self.headers else {}
        nvcf = {"nvcf": True} if self.nvcf else {}
        arguments = {"base_url": self.url, "model": self.model, **form, **key, **headers, **nvcf}
        return {"class_name": f"helm_longctx.apis.{CLIENTS[self.api].__name__}", "args": arguments}


def probe(
    url: str,
    *,
    name: str = "",
    model: str | None = None,
    api: str = "openai",
    kind: str | None = None,
    api_key_env: str | None = None,
    headers: Mapping[str, str] | None = None,
    nvcf: bool = False,
) -> Endpoint:
    """Ask a server for its models, and send one tiny request for each form of prompts.

    Args:
        url: the address, with or without the route (`/v1/chat/completions`).
        name: the user's name for the model. If `model` is None, it is looked up among the server's models.
        model: the model's name in requests.
        kind: the forms to use (`TYPES`); None for all that the server answers.
        api: the protocol, openai or anthropic.
        api_key_env: name of the environment variable with the key; None to send no key.
        nvcf: whether the address is a function in NVIDIA Cloud Functions.

    Raises:
        InputError: the server cannot be reached, refuses the key, does not have the model, or does not answer the form.
    """
    protocol = _check(api, kind)
    access: dict[str, Any] = {"api_key_env": api_key_env, "headers": headers or {}, "nvcf": nvcf}
    endpoint = Endpoint(base_url(url, protocol), protocol, model or "", _routes(protocol), **access)
    models = _list_models(endpoint)
    choice = _choose(endpoint, name, models)
    endpoint = replace(endpoint, model=choice.name, context=choice.context, source=choice.source)
    # Both forms are tried even if the user names one, so that the error can say which one the server answers.
    replies = {route: _ask(endpoint, route) for route in _routes(protocol)}
    results = {route: result for route, (result, _) in replies.items()}
    answered = tuple(route for route, result in results.items() if result.success)
    if not answered:
        raise _no_answer(endpoint, list(results.values()), models)
    _check_listed(endpoint, models)
    routes = _select_routes(kind, answered, results)
    refused = dict.fromkeys(change for route in routes for change in replies[route][1])
    return replace(endpoint, routes=routes, refused=tuple(refused))


def base_url(url: str, api: Api) -> str:
    """Return an address in the form that the official packages take: with `/v1` for OpenAI's, without for Anthropic's.

    Raises:
        InputError: `url` is not an address, or contains a password or a query.
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or "@" in parts.netloc:
        raise bad_argument(
            "endpoint", "url", redact(url), "an http:// or https:// address without a password and without ?query"
        )
    path = _ROUTE.sub("", parts.path)
    # Only Anthropic's package adds `/v1`.
    path = path.removesuffix("/v1") if api == "anthropic" else path or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def make_client(endpoint: Endpoint) -> OpenAIClient | AnthropicClient:
    """Return the client that runs use for an endpoint, without a request cache."""
    return CLIENTS[endpoint.api](BlackHoleCacheConfig(), **endpoint.client_spec()["args"])


def nearest(name: str, names: Sequence[str]) -> str:
    """List the names with the most similar spelling; the first names if none is similar."""
    by_lower = {each.lower(): each for each in names}
    close = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=_NEAREST, cutoff=0.4)]
    return ", ".join(close or names[:_NEAREST])


def _check(api: str, kind: str | None) -> Api:
    if api not in CLIENTS:
        raise bad_argument("endpoint", "api", api, CLIENTS)
    protocol: Api = "openai" if api == "openai" else "anthropic"
    allowed = TYPES if protocol == "openai" else ("chat",)
    if kind is not None and kind not in allowed:
        raise bad_argument("endpoint", "type", kind, allowed)
    return protocol


def _routes(api: Api) -> tuple[Route, ...]:
    return ("chat", "completions") if api == "openai" else ("chat",)


def _list_models(endpoint: Endpoint) -> list[ListedModel]:
    """Return the server's models; an empty list if the server does not list them."""
    try:
        return list_models(make_client(endpoint).client)
    except ValueError:
        return []
    except InputError:
        raise
    except Exception as error:  # from the package or from httpx
        status = getattr(error, "status_code", None)
        if status == 401:
            raise _key_error(endpoint) from None
        # Without a status there was no response. Any other status only means that there is no list.
        if status is None:
            reason = str(error.__cause__ or error)
            raise InputError(f"{endpoint.url} cannot be reached: {redact(shorten(reason, 200))}") from None
        return []


def _choose(endpoint: Endpoint, name: str, models: list[ListedModel]) -> ListedModel:
    by_name = {each.name: each for each in models}
    # HELM's names start with an organization, which a server need not know.
    guesses = [endpoint.model] if endpoint.model else [name, name.partition("/")[2]]
    if found := next((by_name[guess] for guess in guesses if guess in by_name), None):
        return found
    # A name that is not listed may be an alias; the tiny requests will show it.
    if endpoint.model or not models:
        return ListedModel(endpoint.model or guesses[-1])
    if len(models) == 1:
        return models[0]
    raise InputError(
        f"model is missing, and none of the {len(models)} models of {endpoint.url} is called {name!r};"
        f" allowed: one of them, such as {nearest(name, list(by_name))}"
    )


def _check_listed(endpoint: Endpoint, models: list[ListedModel]) -> None:
    """Warn if the server lists models but not this one. It may be an alias, or a mistake that the server overlooks."""
    names = [each.name for each in models]
    if names and endpoint.model not in names:
        hwarn(
            f"{endpoint.url} answers to model={endpoint.model!r} but does not list it; listed: "
            + nearest(endpoint.model, names)
        )


def _ask(endpoint: Endpoint, route: Route) -> tuple[RequestResult, list[str]]:
    """Send one tiny request with the parameters of HELM's requests. Also return the parameters that are refused."""
    client = make_client(replace(endpoint, routes=(route,)))
    request = Request(
        model=f"endpoint/{endpoint.model}",
        model_deployment=f"endpoint/{endpoint.model}",
        prompt=_QUESTION,
        temperature=0.0,
        max_tokens=_MAX_TOKENS,
        # The answer does not reach it, but some models refuse the parameter.
        stop_sequences=["\n\n\n"],
    )
    result = client.make_request(request)
    return result, [str(change) for change in client.parameters.changes]


def _select_routes(
    kind: str | None, routes: tuple[Route, ...], results: Mapping[Route, RequestResult]
) -> tuple[Route, ...]:
    if kind is None:
        return routes
    wanted = tuple(route for route in results if kind in (route, "both"))
    for route in wanted:
        if route not in routes:
            raise InputError(
                f"type={kind!r}: the server does not answer {route} ({_reason(results[route])});"
                f" allowed: {', '.join(routes)}"
            )
    return wanted


def _no_answer(endpoint: Endpoint, results: list[RequestResult], models: list[ListedModel]) -> InputError:
    kinds = [failure_of_text(result.error or "") for result in results]
    if Failure.BAD_KEY in kinds:
        return _key_error(endpoint)
    # Servers answer a request to an unknown model in many ways, so a model that is not listed counts as unknown.
    names = [each.name for each in models]
    if Failure.UNKNOWN_MODEL in kinds or (names and endpoint.model not in names):
        allowed = f"; allowed: one of its models, such as {nearest(endpoint.model, names)}" if names else ""
        reason = _reason(results[kinds.index(Failure.UNKNOWN_MODEL)] if Failure.UNKNOWN_MODEL in kinds else results[0])
        return InputError(f"model={endpoint.model!r}: {endpoint.url} does not have this model ({reason}){allowed}")
    return InputError(f"{endpoint.url} does not answer a tiny request to {endpoint.model!r}: {_reason(results[0])}")


def _key_error(endpoint: Endpoint) -> InputError:
    if endpoint.api_key_env:
        return InputError(f"api_key_env={endpoint.api_key_env!r}: {endpoint.url} refuses the key in this variable")
    return InputError(
        f"api_key_env is missing, and {endpoint.url} needs a key; allowed: the name of the environment variable that"
        " holds the key"
    )


def _reason(result: RequestResult) -> str:
    return redact(" ".join((result.error or "").split()))[:300]
