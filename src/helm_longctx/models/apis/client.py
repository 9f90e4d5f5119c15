"""The base class of our clients for the providers' APIs: settings, keys, cache, sending and failures."""

import os
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, ClassVar

from helm.common.request import wrap_request_time

from helm_longctx.data.download import retry_after
from helm_longctx.environment import require, require_modules
from helm_longctx.errors import InputError, bad_argument, error_text
from helm_longctx.failures import (
    Failure,
    FailureError,
    Problem,
    failure_of_error,
    list_causes,
)
from helm_longctx.helm_api import CacheConfig, CachingClient, Request, RequestResult
from helm_longctx.models import sampling
from helm_longctx.models.apis import protocol
from helm_longctx.models.apis.caching import without_beginning
from helm_longctx.models.apis.connections import find_proxy, ssl_context
from helm_longctx.models.apis.oauth import (
    SAFE_ADDRESS,
    TokenSource,
    find_tokens,
)
from helm_longctx.models.apis.parameters import (
    Parameters,
    find_inner_error,
    find_message,
)
from helm_longctx.models.apis.posting import Poster
from helm_longctx.models.apis.protocol import Body
from helm_longctx.models.apis.provider import ApiClient
from helm_longctx.models.apis.rates import pace
from helm_longctx.models.apis.transport import (
    NO_KEY,
    Transport,
    http_library,
    make_http_client,
)
from helm_longctx.models.results import (
    add_facts,
    answer_of,
    make_failure,
    served_model_of,
    usage_of,
    with_cut,
)
from helm_longctx.redaction.abbreviation import abbreviate, describe_error
from helm_longctx.redaction.logs import warn_once
from helm_longctx.redaction.text import redact, register_secret
from helm_longctx.run_settings import read_variable, settings_in_use
from helm_longctx.tasks.prompt import message_text

_CONNECT_TIMEOUT = 5.0
"""Seconds to wait for a connection, as in the packages."""

_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")

_CHARACTERS = 4
"""Characters per token, for the rate at which prompts are sent. The provider's count corrects it afterwards."""


@dataclass(frozen=True)
class ClientSettings:
    """The arguments in `client_spec.args` that all clients share.

    Args:
        model: the model's name in requests. By default it is the name in HELM without its organization.
        headers: HTTP headers that are added to each request. `$NAME` in a value stands for an environment variable, so
            that no file has to contain a secret.
        extra_body: fields that are added to each request's body, or replace those in it.
        reasoning_effort: the reasoning effort, with a value that the provider expects.
        thinking_tokens: tokens for reasoning. They are added to the limit of each answer.
        stream: whether all answers are streamed. If a server can only stream answers, they are always streamed.
        requests_per_minute, tokens_per_minute: limits for all threads that send to the same address and model.
        api_key_env: name of the environment variable with the key.
        token_env: start of the names of the variables `…_CLIENT_ID`, `…_CLIENT_SECRET` and `…_TOKEN_URL`, whose tokens
            are sent instead of a key.
        timeout: seconds to wait for data of the server, or None for `HELM_LONGCTX_TIMEOUT`.

    Raises:
        InputError: a number is not above 0.
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
    token_env: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "timeout"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise bad_argument("client_spec.args", name, value, "a number above 0")
        if not isinstance(self.thinking_tokens, int) or self.thinking_tokens < 0:
            raise bad_argument(
                "client_spec.args",
                "thinking_tokens",
                self.thinking_tokens,
                "a whole number from 0",
            )


class ProviderClient(ApiClient):
    """A HELM client on a provider's official package. Several threads may call it.

    Args:
        cache_config: HELM's configuration of the request cache.
        api_key: the key. Without it, the key is a token of the client in `…_CLIENT_ID` or in the variable that the
            package reads; with a `base_url` there is no key.
        base_url: the address. By default it is the provider's own.
        settings: see `ClientSettings`.

    Raises:
        InputError: the package is not installed, an argument is invalid, or the variable of `api_key_env` is not
            set.
    """

    caches_prompts: ClassVar[bool] = True
    """Tells the runner that the provider can keep the beginning of a prompt for the next one."""

    def __init__(
        self,
        cache_config: CacheConfig,
        api_key: str | None = None,
        base_url: str | None = None,
        **settings: Any,
    ):
        super().__init__(cache_config)
        require_modules(
            (self.provider.package,), type(self).__name__, self.provider.install
        )
        names = []
        for field in fields(ClientSettings):
            names.append(field.name)
        for name in settings.keys() - names:
            raise bad_argument(type(self).__name__, "argument", name, names)
        self.settings = ClientSettings(**settings)
        self._package: Any = import_module(self.provider.package)
        self._http = http_library(self._package)
        self._tokens: TokenSource | None = None
        self._useless: str | None = None
        address = (
            base_url
            or os.environ.get(self.provider.environment[0])
            or self.provider.address
        )
        with self._name_errors(f"base_url={redact(address)!r}"):
            is_encrypted = self._http.URL(address).scheme == "https"
        if is_encrypted:
            ssl_context(
                self._http
            )  # wrong certificates are found before the first request
        with self._name_errors("a proxy of the environment (HTTPS_PROXY, ALL_PROXY)"):
            find_proxy(self._http, address)
        key = self._find_key(api_key, base_url)
        self._has_key = bool(key)
        http_client = self._make_http_client()
        options = {
            "http_client": http_client,
            "api_key": key,
            # The address of the provider itself is only given to packages that do not know it.
            "base_url": base_url
            or (None if self.provider.reads_environment else address),
            "default_headers": _fill_in(self.settings.headers or {}),
            "timeout": self.settings.timeout
            or self._package.Timeout(
                settings_in_use().request_timeout, connect=_CONNECT_TIMEOUT
            ),
            "max_retries": 0,  # the runner and the judges retry
        }
        with self._name_errors(f"base_url={redact(address)!r}"):
            self.client = self.make_library(**options)
        self.parameters = Parameters()
        self._poster = Poster(self._http, http_client)

    @contextmanager
    def _name_errors(self, what: str) -> Iterator[None]:
        """Raise errors about an address as bad input."""
        try:
            yield
        except InputError:
            raise
        except (ValueError, ImportError, self._http.InvalidURL) as error:
            advice = "give http://HOST:PORT, or unset it for this address"
            raise InputError(
                f"{type(self).__name__}: {what} cannot be used: {describe_error(error)}; {advice}"
            ) from error

    def route(self, request: Request) -> str:
        """Return the path to which a request is sent, as it stands in files of batches."""
        return self.provider.routes["chat"]

    @abstractmethod
    def parse(self, request: Request, reply: Body) -> RequestResult:
        """Return the answer in a reply.

        Raises a `FailureError` if the reply is a refusal or an error, or does not follow the protocol.
        """

    @abstractmethod
    def wanted_body(self, request: Request) -> Body:
        """Return the body of a request, before parameters that the model refuses are changed."""

    @abstractmethod
    def make_library(self, **options: Any) -> Any:
        """Return the package's client."""

    def stream_fields(self, body: Body) -> Body:
        """Return the fields that ask for a stream. There are none if the provider answers this body in one piece."""
        if self.settings.stream or body.get("stream"):
            return {"stream": True}
        return {}

    def join_stream(self, events: Iterable[Any]) -> Body:
        """Return the reply that a stream of events consists of."""
        raise FailureError(
            Failure.BAD_REQUEST,
            f"{type(self).__name__} reads no streams; remove stream",
        )

    def read_error(self, status: int, body: Any) -> Problem | None:
        """Return why a request failed, if the body of an error has a shape of the provider's own.

        Without a result, the status and the words of the body tell the kind of failure, as for most servers.

        Args:
            status: the HTTP status, from 400.
            body: the JSON of the reply, or its text if it is not JSON.
        """
        return None

    def _read_own_error(self, error: Exception) -> Problem | None:
        status = getattr(error, "status_code", None)
        if status is None:
            return None
        return self.read_error(status, getattr(error, "body", None))

    def body(self, request: Request) -> Body:
        """Return the JSON body of a request exactly as it is sent, without the fields that ask for a stream.

        Raises a `FailureError` if the request asks for something that cannot be sent.
        """
        fields = {}
        body = self.wanted_body(request)
        for name, value in self.parameters.apply(
            body, sampling.asked_of(request)
        ).items():
            if name not in ("stream", "stream_options"):
                fields[name] = value
        return fields

    def result(
        self,
        request: Request,
        reply: Body,
        parsed: RequestResult | None = None,
    ) -> RequestResult:
        """Return the result of a request whose reply has arrived. Never raises.

        Args:
            parsed: the answer in the reply, if it was parsed before.
        """
        try:
            # A reply from the cache has the body that was sent, because this process may not know yet which parameters
            # the model refuses.
            sent = reply.get("sent") or protocol.without_prompt(self.body(request))
            facts = {
                "sent": sent,
                "first_token_seconds": _read_seconds(reply.get("first_token_seconds")),
            }
            if (model := served_model_of(reply.get("model"))) is not None:
                facts["served_model"] = model
            parsed = parsed or self.parse(request, reply)
            result = with_cut(add_facts(parsed, **facts))
        except Exception as error:  # replies can have any structure
            return _failure_result(error)
        if (other := answer_of(result).other_model) is not None:
            warn_once(
                f"{request.model_deployment}: the server answers as {other!r}, not as"
                f" {sent['model']!r}"
            )
        return result

    def make_request(self, request: Request) -> RequestResult:
        """Send a request once, or take the reply from the cache. A failure is a result with the kind of failure.

        A request whose parameters the model refuses is sent again without them.

        Raises:
            InputError: the request cache cannot be used.
        """
        parsed = None

        def ask() -> Body:
            nonlocal parsed
            reply, parsed = self._ask(request)
            return reply

        try:
            reply, cached = self.cache.get(self.cache_key(request), ask)
        except InputError:
            raise
        except Exception as error:  # the packages also raise errors of their HTTP library and of parsers
            return _failure_result(error)
        # The reply to a request in a batch has no times.
        times = {}
        for name in ("request_time", "request_datetime"):
            times[name] = reply.get(name)
        result = self.result(request, reply, parsed)
        return replace(result, cached=cached, **times)

    def cache_key(self, request: Request) -> Mapping[str, Any]:
        """Return the key under which the request cache has the reply to a request.

        A digest stands for the prompt, so that the key of a long prompt is short. Learned changes are not
        part of the key, because a later process has to find the reply before it learns them.
        """
        body = self.wanted_body(without_beginning(request))
        raw = {
            "route": self.route(request),
            **protocol.parameters_of(body),
            "sha256": protocol.digest_prompt(body),
        }
        return CachingClient.make_cache_key(raw, request)

    def ask(self, request: Request) -> Body:
        """Send a request once, without the request cache, and return the reply with what was sent.

        Raises:
            Exception: there is no answer. The packages have their own errors (`failure_of_error` understands them).
        """
        reply, _ = self._ask(request)
        return reply

    def _ask(self, request: Request) -> tuple[Body, RequestResult]:
        """Return the reply with what was sent, as `ask` does, and the answer in it."""
        wanted = self.wanted_body(request)
        characters = len(request.prompt)
        for message in request.messages or []:
            characters += len(message_text(message))
        tokens = characters / _CHARACTERS + request.max_tokens
        rate = pace(
            str(self.client.base_url),
            wanted["model"],
            self.settings.requests_per_minute,
            self.settings.tokens_per_minute,
        )
        reply = None
        asked = sampling.asked_of(request)
        # Each round learns a new change, so the loop ends when nothing is left to drop or rename.
        while reply is None:
            body = self.parameters.apply(wanted, asked)
            # The changes are applied twice: `stream_fields` has to see a learned `stream`, and the model can refuse
            # the fields that it adds.
            sent = self.parameters.apply({**body, **self.stream_fields(body)}, asked)
            rate.wait(tokens)
            try:
                reply = wrap_request_time(partial(self._exchange, request, sent))()
            except Exception as error:
                if (seconds := retry_after(error)) is not None:
                    _check_wait(seconds, error, _describe_reply(error))
                    rate.pause(seconds)
                if problem := self._read_own_error(error):
                    raise FailureError(problem.kind, problem.reason) from error
                reply = self._reply_in_error(error)
                if reply is None and not (
                    self.parameters.learn(error, sent, asked)
                    or self._renew_token(error)
                ):
                    raise
        self._useless = None
        result = self.parse(
            request, reply
        )  # raises if the reply is not an answer: that must not be cached
        if usage := usage_of(result):
            if self.provider.limits_cached_tokens:
                free = 0
            else:
                free = usage.cached_tokens
            rate.correct(usage.input_tokens - free + usage.output_tokens - tokens)
        return {**reply, "sent": protocol.without_prompt(sent)}, result

    def _reply_in_error(self, error: Exception) -> Body | None:
        """Return the reply that an error of the server stands for, if it is not an error."""
        return None

    def _exchange(self, request: Request, body: Body) -> Body:
        """Send a body and return the reply. The body is serialized once."""
        url = self._find_url(self.route(request))
        content = protocol.serialize(body)
        library = self.client
        if not body.get("stream"):
            return protocol.read_reply(self._post_content(url, content))
        stream_cls = self._package.Stream[object]
        options = {
            "cast_to": object,
            "content": content,
            "stream": True,
            "stream_cls": stream_cls,
        }
        start = time.monotonic()
        with protocol.name_malformed(), library.post(url, **options) as events:
            # Some gateways answer in one piece although a stream was asked for, and others name a stream JSON.
            if "event-stream" not in events.response.headers.get("content-type", ""):
                content = events.response.read()
                if content.lstrip().startswith(b"{"):
                    return protocol.read_reply(content)
            timed = protocol.TimedEvents(events, start)
            return {**self.join_stream(timed), "first_token_seconds": timed.seconds}

    def _post_content(self, url: str, content: bytes) -> bytes:
        """Send a body, and return the content of the reply, whose JSON keeps fields that other servers add."""
        if self._tokens is None:
            return self._poster.post(self.client, url, content)
        # Only the package knows which token a request had.
        response = self.client.post(url, cast_to=self._http.Response, content=content)
        return bytes(response.content)

    def _find_url(self, path: str) -> str:
        """Return the whole address of a path. With a path alone, the package takes longer to make a request."""
        if path.startswith(("http://", "https://")):
            return path
        base = str(self.client.base_url).rstrip("/")
        own = path.removeprefix(self.provider.address_part).lstrip("/")
        return f"{base}/{own}"

    def post(
        self,
        path: str,
        body: Body,
        headers: Mapping[str, str] | None = None,
    ) -> Body:
        """Send a body once to a path of the server that no request of HELM's has, and return the reply.

        Args:
            path: the path after the address, such as `/responses/compact` in OpenAI's protocol.
            headers: further headers.

        Raises:
            Exception: there is no reply, as for `ask`.
        """
        options = {"headers": dict(headers)} if headers else {}
        response = self.client.post(
            self._find_url(path),
            cast_to=self._http.Response,
            content=protocol.serialize(body),
            options=options,
        )
        return protocol.read_reply(response.content)

    def abort(self, request: Request) -> None:
        """Send a request, and close its stream after the first event."""
        body = self.parameters.apply({**self.wanted_body(request), "stream": True})
        options = {
            "cast_to": object,
            "content": protocol.serialize(body),
            "stream": True,
        }
        with self.client.post(
            self._find_url(self.route(request)),
            stream_cls=self._package.Stream[object],
            **options,
        ) as events:
            next(iter(events), None)

    def bulk_library(self) -> Any:
        """Return a copy of `client` for files of any size. They are sent in pieces and read line by line."""
        return self.client.with_options(http_client=self._bulk_http_client)

    @cached_property
    def _bulk_http_client(self) -> Any:
        return self._make_http_client(is_bulk=True)

    def _make_http_client(self, is_bulk: bool = False) -> Any:
        return make_http_client(self._http, self._make_transport(is_bulk))

    def _make_transport(self, is_bulk: bool) -> Any:
        """Return what sends the HTTP requests; see `transport.Transport`."""
        if self.settings.timeout:
            least_seconds = settings_in_use().request_timeout
        else:
            least_seconds = 0.0
        return Transport(
            self._http,
            least_seconds,
            is_bulk,
            unsent_keys=self._unsent_keys(),
            key_header=self.provider.key_header,
        )

    def _unsent_keys(self) -> tuple[str, ...]:
        """Return what the package would send as a key, and no request may carry."""
        return ()

    def _find_key(
        self,
        api_key: str | None,
        base_url: str | None,
    ) -> str | Callable[[], str] | None:
        """Return the key, or what returns the current token. Returns None if the package is to read the key.

        The variable's key is for no other address.
        """
        key = api_key
        provider = self.provider
        name = self.settings.api_key_env
        if self.settings.token_env or (self.takes_tokens and not (key or name)):
            self._tokens = self._find_tokens(base_url)
        if self._tokens:
            return self._tokens.current
        if name is None and not (key or base_url or provider.reads_environment):
            name = provider.key_variable
        if name is not None and not (key := read_variable(name)):
            if self.settings.api_key_env:
                what = f"api_key_env={name!r}"
            else:
                what = type(self).__name__
            raise InputError(
                f"{what}: the environment variable {name} is not set; name a variable"
                " that holds the key"
            )
        if key:
            register_secret(key)
        return key or (NO_KEY if base_url else None)

    def _find_tokens(self, base_url: str | None) -> TokenSource | None:
        wanted = self.settings.token_env
        prefix = wanted or self.provider.key_prefix
        tokens = find_tokens(prefix)
        if wanted and not (tokens and self.takes_tokens):
            unused = f"cannot be used: {type(self).__name__} sends no bearer token"
            what = "are not set" if self.takes_tokens else unused
            raise InputError(
                f"token_env={wanted!r}: {prefix}_CLIENT_ID, _CLIENT_SECRET and _TOKEN_URL {what}"
            )
        if tokens and base_url and not wanted and not SAFE_ADDRESS.match(base_url):
            where = "is only sent over https or to this machine, unless token_env names its variables"
            warn_once(
                f"{base_url} gets no token of {prefix}_CLIENT_ID, because a token {where}"
            )
            return None
        if tokens:
            require("judges", f"{prefix}_CLIENT_ID")
        return tokens

    def _renew_token(self, error: Exception) -> bool:
        """Request another token if the server refused one. A new token that is refused, too, is not renewed."""
        if self._tokens is None or getattr(error, "status_code", None) != 401:
            return False
        # Another thread may have got a new token since this one was sent.
        sent: str = error.response.request.headers.get("Authorization", "")  # type: ignore[attr-defined]
        refused = sent.removeprefix("Bearer ")
        if refused == self._useless:
            return False
        self._useless = self._tokens.current(refused)
        return self._useless != refused


def _fill_in(headers: Mapping[str, str]) -> dict[str, str]:
    """Replace variables in the values of headers. The values of the variables are secrets."""

    def look_up(match: re.Match[str]) -> str:
        if not (value := read_variable(match[1])):
            raise InputError(
                f"headers: the environment variable {match[1]} is not set; set it to"
                " the header's value"
            )
        register_secret(value)
        return value

    return {name: _VARIABLE.sub(look_up, value) for name, value in headers.items()}


def _check_wait(seconds: float, error: BaseException, words: str) -> None:
    """Raise a `FailureError` if a server asks for a wait that is longer than a request may take.

    A limit for a day is such a case. Waiting would only end in a timeout that hides the server's words.
    """
    if seconds > settings_in_use().request_timeout:
        wait = f"the server allows the next request in {seconds:,.0f} seconds"
        raise FailureError(Failure.QUOTA, f"{words}; {wait}") from error


def _read_seconds(value: object) -> float | None:
    """Return a time in a stored reply. None for another value: caches of other programs can have any."""
    if isinstance(value, float) and value >= 0:
        return value
    return None


def _failure_result(error: BaseException) -> RequestResult:
    # It is redacted before it is shortened, because a secret that is cut in two would not be found.
    # The body of an error that is not JSON can have line breaks.
    text = abbreviate(" ".join(redact(_describe_reply(error)).split()))
    return make_failure(failure_of_error(error), text)


def _describe_reply(error: BaseException) -> str:
    """Return the server's own words for a failure, or else the cause."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    # The packages raise errors of their own, with ours as the cause.
    for cause in list_causes(error):
        if isinstance(cause, FailureError):
            return str(cause)
    # The packages show the server's own message only in the `repr` of the body.
    if status and isinstance(body, Mapping) and (message := find_message(body)):
        upstream = _describe_upstream(find_inner_error(body))
        return f"status {status}: {message}{upstream}"
    # The packages' errors of a connection say nothing of its cause.
    root = [*list_causes(error)][-1]
    has_cause = root is not error and status is None and str(root)
    if has_cause:
        explanation = f" ({error_text(root)})"
    else:
        explanation = ""
    return f"{type(error).__name__}: {error_text(error)}{explanation}"


def _describe_upstream(inner: object) -> str:
    """Return what the provider behind a router said: OpenRouter has it in `metadata`."""
    metadata = inner.get("metadata") if isinstance(inner, Mapping) else None
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f" ({raw})" if raw else ""
