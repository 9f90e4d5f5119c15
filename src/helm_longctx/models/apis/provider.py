"""The record of a provider: everything that this package knows of it besides the code of its client and its batches.

`apis/providers/` has one file for each provider. Another package can have one as well, which it names by an entry point
of the group `helm_longctx.providers`, by convention `package.module:PROVIDER`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.helm_api import CacheConfig, CachingClient
from helm_longctx.models.apis.batches import Service
from helm_longctx.models.apis.caching import LongCache
from helm_longctx.models.apis.parameters import Parameters
from helm_longctx.parts import check_fields, check_name, load_plugins
from helm_longctx.redaction.text import SecretFormat, register_format

GROUP = "helm_longctx.providers"

_CLIENTS = "helm_longctx.models.apis"
"""The module from which deployments take the clients of all providers: `helm_longctx.models.apis.OpenAIClient`."""

_FOLDER = f"{_CLIENTS}.providers"

_refused: set[type] = set()
"""The clients of providers that are left out."""

_PROSE = "The quick brown fox jumps over the lazy dog. " * 9
"""Ordinary text, in which no key is found."""


class _Record:
    """The attribute `provider` of a client's class and of its objects, which is looked up among the providers in use.

    If records set the attribute, a provider that is left out could answer for another one.
    """

    def __get__(self, client: object, owner: type) -> Provider:
        return _find_record(owner)


class ApiClient(CachingClient):
    """What records and commands know of our clients. The class that clients derive from is `client.ProviderClient`.

    Attributes:
        client: the package's client. Callers may replace it by one with other options, but requests use an HTTP client
            of their thread.
        parameters: the parameters that the model refuses, as far as they are known.
    """

    provider = _Record()
    """The record of the provider."""

    takes_tokens: ClassVar[bool] = False
    """Whether the key is a bearer token, so that it can be one of OAuth 2.0."""

    client: Any
    parameters: Parameters

    def __init__(
        self,
        cache_config: CacheConfig,
        api_key: str | None = None,
        base_url: str | None = None,
        **settings: Any,
    ):
        super().__init__(cache_config=cache_config)

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return what a client with these arguments sends: `chat`, `completion`, or `both` if each request decides."""
        return "chat"

    @classmethod
    def takes_sampling(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the arguments of run entries about sampling that a client with these arguments can send."""
        record = cls.provider
        address = (
            arguments.get("base_url")
            or os.environ.get(record.environment[0])
            or record.address
        )
        return record.sampling + (
            record.server_sampling if urlsplit(address).netloc != record.host else ()
        )


class HelmClient(NamedTuple):
    """A client of HELM's own for a provider.

    Args:
        key_prefix: start of the name of the variable from which its library reads the key.
        sends_messages: whether it sends a request's messages.
    """

    key_prefix: str
    sends_messages: bool


@dataclass(frozen=True)
class Provider:
    """A provider of an API, and of the protocol that other servers can have, too.

    Args:
        name: the name of the protocol, as users write it: `api: openai`.
        client: our client. Its attribute `provider` is the record (`ProviderClient.provider`).
        address: the provider's own address, in the form that its package takes.
        package: the Python package with which requests are sent.
        install: what pip has to install for it.
        key_prefix: start of the names of the variables with the key (`…_API_KEY`) and the address (`…_BASE_URL`).
        key_header: the header that carries the key, such as `x-acme-key`. Empty for the package's own one.
        sampling: the names in `tasks.entry.SAMPLING` that the provider takes.
        server_sampling: those that other servers with its protocol take, too.
        reads_environment: whether the package reads these variables and knows the address. If it does not, for example
            because it is the package of another provider, our client does.
        routes: the path of each form of requests, `chat` and perhaps `completions`.
        version: the start of all paths, the models route included.
        address_has_version: whether addresses in the form that the package takes end with the version.
        models_query: what is added to the models route, so that it lists all models.
        cache_mark: the field that marks the end of a beginning that the provider's prompt cache keeps, or None if the
            provider finds beginnings by itself, or has no such cache.
        long_cache: the prompt cache that keeps beginnings until a batch has read them, or None if there is only one cache.
        limits_cached_tokens: whether tokens that are read from the prompt cache count towards the provider's limit of
            tokens per minute.
        batches: the service that answers batches, or None if there is none.
        batch_files: the service of files for a program that answers the same requests without a server, or None for none.
        secret: the format of the provider's keys, so that they are redacted wherever they occur, or None if it has none.
        helm_clients: HELM's own clients for the provider, by the names of their classes.
        helm_model_arguments: the arguments with which HELM's clients get the model's name in requests.
        address_variables: further variables from which libraries of the provider take the address.
    """

    name: str
    client: type[ApiClient]
    address: str
    package: str
    install: str
    key_prefix: str
    routes: Mapping[str, str]
    key_header: str = ""
    sampling: tuple[str, ...] = ("temperature", "top_p")
    server_sampling: tuple[str, ...] = ()
    reads_environment: bool = True
    version: str = "/v1"
    address_has_version: bool = True
    models_query: str = ""
    cache_mark: Mapping[str, Any] | None = None
    long_cache: LongCache | None = None
    limits_cached_tokens: bool = True
    batches: type[Service] | None = None
    batch_files: type[Service] | None = None
    secret: SecretFormat | None = None
    helm_clients: Mapping[str, HelmClient] = field(default_factory=dict)
    helm_model_arguments: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()

    @property
    def client_path(self) -> str:
        """The path of the client's class, as deployments name it."""
        return f"{_CLIENTS}.{self.client.__name__}"

    @property
    def host(self) -> str:
        """The name of the provider's server."""
        return urlsplit(self.address).netloc

    @property
    def key_variable(self) -> str:
        """The variable with the key."""
        return f"{self.key_prefix}_API_KEY"

    @property
    def batch_write_price(self) -> float:
        """The price of writing to the cache that a batch reads, relative to the price of writing to the usual one."""
        if self.long_cache:
            return self.long_cache.write_price
        return 1.0

    @property
    def address_part(self) -> str:
        """The start of each path that the address already contains."""
        return self.version if self.address_has_version else ""

    @property
    def forms(self) -> tuple[str, ...]:
        """What users can choose as the form of requests."""
        if len(self.routes) > 1:
            return (*self.routes, "both")
        return tuple(self.routes)

    @property
    def environment(self) -> tuple[str, ...]:
        """The variables from which libraries of the provider take the address."""
        return (f"{self.key_prefix}_BASE_URL", *self.address_variables)


@cache
def our_providers() -> tuple[Provider, ...]:
    """Return the providers in `apis/providers/`."""
    folder = import_module(_FOLDER)
    names = sorted(module.name for module in iter_modules(folder.__path__))
    ours = tuple(import_module(f"{_FOLDER}.{name}").PROVIDER for name in names)
    _register_formats(ours)
    return ours


@cache
def providers() -> Mapping[str, Provider]:
    """Return all providers by name: ours, and then the providers of other packages.

    A provider of another package that cannot be used, or would answer for another one, is left out with a warning. It
    then has no effect at all: records change nothing when they are made.
    """
    by_name = {}
    for provider in our_providers():
        by_name[provider.name] = provider
    for provider in load_plugins(GROUP, "provider", partial(_check, by_name)):
        by_name[provider.name] = provider
    _register_formats(by_name.values())
    return by_name


def _register_formats(usable: Iterable[Provider]) -> None:
    """Have the keys of providers redacted from now on. No client can be used before (`_find_record`)."""
    for provider in usable:
        if provider.secret is not None:
            register_format(provider.secret)


def _check(others: Mapping[str, Provider], provider: Any) -> Provider:
    """Return a provider of another package, if it can be used beside others."""
    if isinstance(kind := getattr(provider, "client", None), type):
        _refused.add(kind)
    check_fields(provider, Provider)
    if provider.client.__abstractmethods__:
        raise InputError(
            f"client: {provider.client.__name__} lacks {min(provider.client.__abstractmethods__)}"
        )
    _check_names(provider)
    taken: set[tuple[str, str]] = set()
    for other in others.values():
        taken.update(_list_names(other))
    if clash := [name for name in _list_names(provider) if name in taken]:
        raise InputError(f"another one has its {' '.join(clash[0])}")
    _refused.discard(provider.client)
    return provider


def _list_names(provider: Provider) -> list[tuple[str, str]]:
    """Return the names of a provider, its keys, its clients and its batches."""
    services = filter(None, (provider.batches, provider.batch_files))
    return [
        ("name", provider.name),
        ("client", provider.client.__name__),
        ("key_prefix", provider.key_prefix),
        *(("client of HELM", name) for name in provider.helm_clients),
        *(("batches", service.name) for service in services),
    ]


def _check_names(provider: Provider) -> None:
    check_name("provider", provider.name)
    clients = provider.helm_clients.values()
    tuples = (provider.secret, SecretFormat), (provider.long_cache, LongCache)
    for part, kind in (*tuples, *((client, HelmClient) for client in clients)):
        # To pydantic, a plain tuple is a named one, too.
        if part is not None and not isinstance(part, kind):
            raise InputError(f"{shorten(part)} is not a {kind.__name__}")
    for name, value, pattern, allowed in (
        (
            "address",
            provider.address,
            r"https?://[\w.-]+(:\d+)?(/\S*)?",
            "an address that starts with https://",
        ),
        ("package", provider.package, r"[A-Za-z_]\w*(\.\w+)*", "the name of a package"),
        (
            "key_prefix",
            provider.key_prefix,
            r"[A-Z][A-Z0-9_]*",
            "the start of a variable's name, such as ACME",
        ),
        ("version", provider.version, r"(/[\w.-]+)*", "a path such as /v1"),
        *(
            ("routes", route, r"(/[\w.-]+)+", "paths such as /v1/chat")
            for route in provider.routes.values()
        ),
    ):
        if not re.fullmatch(pattern, value):
            raise bad_argument("provider", name, value, allowed)
    if "chat" not in provider.routes or not set(provider.routes) <= {
        "chat",
        "completions",
    }:
        raise bad_argument(
            "provider",
            "routes",
            [*provider.routes],
            "chat, and completions if there are any",
        )
    if provider.secret is not None:
        hints, pattern = provider.secret
        # The patterns of all providers are one pattern, in which groups with names could clash.
        expression = re.compile(f"(?!)|{pattern}")
        # Without a literal at its start, it would replace ordinary text.
        if (
            not hints
            or not all(len(hint) > 2 for hint in hints)
            or expression.groupindex
            or expression.search(_PROSE)
        ):
            raise bad_argument(
                "provider",
                "secret",
                pattern,
                "hints of 3 letters or more, and a pattern of keys alone",
            )


def _find_record(client: type) -> Provider:
    """Return the record of a client's class, or of the nearest class from which it is derived.

    Raises an `InputError` if no provider has such a client.
    """
    records = {}
    for provider in providers().values():
        records[provider.client] = provider
    for parent in client.__mro__:
        if parent in records:
            return records[parent]
        # Its parent can be the client of another provider, to which this one's keys must not be sent.
        if parent in _refused:
            break
    raise InputError(
        f"{client.__name__} is the client of no provider that is in use; see the"
        " warnings about providers"
    )


def find_provider(name: str) -> Provider:
    """Return the provider with a name; raise an `InputError` if there is none."""
    if name not in providers():
        raise bad_argument("endpoint", "api", name, providers())
    return providers()[name]


def client_provider(class_name: str) -> Provider | None:
    """Return the provider of a client by the path of its class. Clients of HELM and of other packages have none."""
    by_path = {}
    for provider in providers().values():
        kind = provider.client
        # A deployment can also name the module in which the client is.
        for module in (_CLIENTS, kind.__module__):
            by_path[f"{module}.{kind.__name__}"] = provider
    return by_path.get(class_name)


def library_provider(client: object) -> Provider | None:
    """Return the provider whose package a HELM client uses, if it uses one of them."""
    if (own := getattr(client, "provider", None)) is not None:
        return own
    package = type(getattr(client, "client", None)).__module__.partition(".")[0]
    for provider in providers().values():
        if provider.package == package and provider.reads_environment:
            return provider
    return None


def helm_clients() -> Iterator[tuple[str, HelmClient]]:
    """Yield HELM's own clients for the providers: the names of their classes, and what is known of them."""
    for provider in providers().values():
        yield from provider.helm_clients.items()
