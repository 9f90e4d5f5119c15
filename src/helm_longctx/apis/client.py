"""What our clients for the providers' APIs have in common: settings, keys, cache, sending and failures."""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from helm.clients.client import CachingClient
from helm.common.cache import CacheConfig
from helm.common.request import ErrorFlags, Request, RequestResult, wrap_request_time

from helm_longctx.environment import request_timeout, require
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, FailureError, failure_of_error, label_error
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact, register_secret

Body = dict[str, Any]
"""The JSON body of a request or of a reply."""

NO_KEY = "EMPTY"
"""Sent as the key to an address that has none. The packages would send the provider's own key instead."""

CONNECT_TIMEOUT = 5.0
"""Seconds, as in the packages."""


@dataclass(frozen=True)
class Settings:
    """The arguments in `client_spec.args` that all clients share.

    Args:
        model: the name that is sent; None for the name of HELM's model without its organization.
        headers: HTTP headers that are added to each request.
        extra_body: fields that are added to each request's body, or replace those in it.
        reasoning_effort: how much the model is to reason, in the provider's words.
        thinking_tokens: tokens for reasoning, which are added to the limit of each answer.
        stream: whether answers are streamed. Answers that a provider only streams are streamed in any case.
        requests_per_minute, tokens_per_minute: limits for all threads that send to the same address and model.
        api_key_env: name of the environment variable with the key.
        timeout: seconds that the server may stay silent; None for `HELM_LONGCTX_TIMEOUT`.
    """

    model: str | None = None
    headers: Mapping[str, str] | None = None
    extra_body: Mapping[str, Any] | None = None
    reasoning_effort: str | None = None
    thinking_tokens: int = 0
    stream: bool = False
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    api_key_env: str | None = None
    timeout: float | None = None


class ProviderClient(CachingClient):
    """A HELM client on a provider's official package. Several threads may call it.

    Args:
        cache_config: HELM's configuration of the request cache.
        api_key: the key; None for the variable that the package reads, or for no key if there is a `base_url`.
        base_url: the address; None for the provider's own.
        settings: see `Settings`.

    Attributes:
        client: the package's client. Callers may replace it by one with other options.

    Raises:
        InputError: the package is not installed, or `api_key_env` names a variable that is not set.
    """

    package: ClassVar[str]
    """Name of the package and of the extra that installs it."""

    def __init__(
        self, cache_config: CacheConfig, api_key: str | None = None, base_url: str | None = None, **settings: Any
    ):
        super().__init__(cache_config=cache_config)
        require(self.package, type(self).__name__)
        self.settings = Settings(**settings)
        self.client = self._make_library(_find_key(self.settings, api_key, base_url), base_url)

    @abstractmethod
    def route(self, request: Request) -> str:
        """Return the path to which a request is sent, as it stands in files of batches."""

    @abstractmethod
    def body(self, request: Request) -> Body:
        """Return the JSON body of a request exactly as it is sent, without the fields that ask for a stream."""

    @abstractmethod
    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply.

        Raises:
            FailureError: the reply is a refusal or an error, or does not follow the protocol.
        """

    @abstractmethod
    def _make_library(self, api_key: str | None, base_url: str | None) -> Any:
        """Return the package's client."""

    @abstractmethod
    def _post(self, request: Request, body: Body) -> Body:
        """Send a body and return the reply."""

    def result(self, request: Request, reply: Body) -> RequestResult:
        """Return the result of a request whose reply has arrived. Never raises."""
        try:
            return self.parse(request, reply)
        except Exception as error:
            return _failed(error)

    def make_request(self, request: Request) -> RequestResult:
        """Send a request once, or take the reply from the cache. Failures are results, labelled with their kind.

        Raises:
            InputError: the request cache cannot be used.
        """
        try:
            key = CachingClient.make_cache_key(self._cache_key(request), request)
            reply, cached = self.cache.get(key, wrap_request_time(partial(self._ask, request)))
            result = self.parse(request, reply)
        except InputError:
            raise
        except Exception as error:  # the packages also raise errors of httpx and of parsers
            return _failed(error)
        return replace(
            result, cached=cached, request_time=reply["request_time"], request_datetime=reply["request_datetime"]
        )

    def _ask(self, request: Request) -> Body:
        reply = self._post(request, self.body(request))
        self.parse(request, reply)  # what is no answer must not be cached
        return reply

    def _cache_key(self, request: Request) -> Body:
        """The body, with a digest in the place of the prompt: the key of a long prompt is as short as of any other."""
        body = self.body(request)
        prompt = {name: body.pop(name) for name in ("prompt", "system", "messages") if name in body}
        return {"route": self.route(request), **body, "sha256": _digest(prompt)}


def _find_key(settings: Settings, api_key: str | None, base_url: str | None) -> str | None:
    name = settings.api_key_env
    if name is None:
        return api_key or (NO_KEY if base_url else None)
    key = os.environ.get(name, "").strip()
    if not key:
        raise InputError(f"api_key_env={name!r}: the environment variable {name} is not set; allowed: one with the key")
    register_secret(key)
    return key


def timeouts(settings: Settings, timeout_class: Any) -> Any:
    """Return the timeouts of a package's client: a number if the deployment sets it, so that no caller changes it."""
    return settings.timeout or timeout_class(request_timeout(), connect=CONNECT_TIMEOUT)


def turns(request: Request) -> list[dict[str, Any]]:
    """Return the messages of a chat. A prompt beside them is the last user turn."""
    return [*(request.messages or []), *([{"role": "user", "content": request.prompt}] if request.prompt else [])]


def _failed(error: BaseException) -> RequestResult:
    kind = failure_of_error(error)
    text = str(error) if isinstance(error, FailureError) else f"{type(error).__name__}: {error}"
    flags = ErrorFlags(is_retriable=kind.is_retriable, is_fatal=False)
    return RequestResult(False, [], [], False, error=label_error(kind, abbreviate(redact(text))), error_flags=flags)


def check_text(request: Request) -> None:
    """Check that a request asks for one answer in text.

    Raises:
        FailureError: it asks for something that our clients do not send.
    """
    values = {
        "num_completions": request.num_completions > 1,
        "echo_prompt": request.echo_prompt,
        "embedding": request.embedding,
        "multimodal_prompt": request.multimodal_prompt is not None,
    }
    if names := [name for name, value in values.items() if value]:
        raise FailureError(Failure.BAD_REQUEST, f"{' and '.join(names)} cannot be sent; allowed: one answer in text")


def cut_at_stop(text: str, stops: list[str]) -> str:
    """Return a text up to the first stop sequence, for servers that do not take them."""
    return text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]


def _digest(value: Any) -> str:
    sha = hashlib.sha256()
    _update(sha, value)
    return sha.hexdigest()


def _update(sha: Any, value: Any) -> None:
    """Hash JSON text by text, so that a long prompt is encoded once and never joined."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            _update(sha, name)
            _update(sha, item)
    elif isinstance(value, list):
        for item in value:
            _update(sha, item)
    else:
        data = str(value).encode("utf-8", "surrogatepass")
        sha.update(f"{len(data)}\0".encode())
        sha.update(data)
