"""The record of a provider: everything that this package knows of it besides the code of its client and its batches.

`apis/providers/` has one file for each provider. Another package can have one as well, which it names by an entry point
of the group `helm_longctx.providers`, by convention `package.module:PROVIDER`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from helm_longctx._moved import current_name
from helm_longctx.errors import bad_argument
from helm_longctx.redaction.text import SecretFormat, register_format

if TYPE_CHECKING:
    from helm_longctx.models.apis.batches import Service
    from helm_longctx.models.apis.caching import LongCache
    from helm_longctx.models.apis.client import ProviderClient

GROUP = "helm_longctx.providers"

CLIENTS = "helm_longctx.models.apis"
"""The module from which deployments take the clients of all providers: `helm_longctx.models.apis.OpenAIClient`."""

_FOLDER = f"{CLIENTS}.providers"

_log = logging.getLogger(__name__)


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
        client: our client. Its class gets the record as the attribute `provider`.
        address: the provider's own address, in the form that its package takes.
        package: the Python package with which requests are sent.
        install: what pip has to install for it.
        key_prefix: start of the names of the variables with the key (`…_API_KEY`) and the address (`…_BASE_URL`).
        reads_environment: whether the package reads these variables and knows the address. If it does not, for example
            because it is the package of another provider, our client does.
        routes: the path of each form of requests, `chat` and perhaps `completions`.
        version: the start of all paths, the models route included.
        address_has_version: whether addresses in the form that the package takes end with the version.
        models_query: what is added to the models route, so that it lists all models.
        cache_mark: the field that marks the end of a beginning that the provider's prompt cache keeps; None if the
            provider finds beginnings by itself, or has no such cache.
        long_cache: the prompt cache that keeps beginnings until a batch has read them; None if there is only one cache.
        limits_cached_tokens: whether tokens that are read from the prompt cache count towards the provider's limit of
            tokens per minute.
        batches: the service that answers batches; None if there is none.
        batch_files: the service of files for a program that answers the same requests without a server; None for none.
        secret: the format of the provider's keys, so that they are redacted wherever they occur; None if it has none.
        helm_clients: HELM's own clients for the provider, by the names of their classes.
        helm_model_arguments: the arguments with which HELM's clients get the model's name in requests.
        address_variables: further variables from which libraries of the provider take the address.
    """

    name: str
    client: type[ProviderClient]
    address: str
    package: str
    install: str
    key_prefix: str
    routes: Mapping[str, str]
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

    def __post_init__(self) -> None:
        self.client.provider = self
        # A key must be redacted as soon as the provider's client can be used.
        if self.secret is not None:
            register_format(self.secret)

    @property
    def client_path(self) -> str:
        """The path of the client's class, as deployments name it."""
        return f"{CLIENTS}.{self.client.__name__}"

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
        return self.long_cache.write_price if self.long_cache else 1.0

    @property
    def address_part(self) -> str:
        """The start of each path that the address already contains."""
        return self.version if self.address_has_version else ""

    @property
    def forms(self) -> tuple[str, ...]:
        """What users can choose as the form of requests."""
        return (*self.routes, "both") if len(self.routes) > 1 else tuple(self.routes)

    @property
    def environment(self) -> tuple[str, ...]:
        """The variables from which libraries of the provider take the address."""
        return (f"{self.key_prefix}_BASE_URL", *self.address_variables)


def our_providers() -> tuple[Provider, ...]:
    """Return the providers in `apis/providers/`."""
    folder = import_module(_FOLDER)
    names = sorted(module.name for module in iter_modules(folder.__path__))
    return tuple(import_module(f"{_FOLDER}.{name}").PROVIDER for name in names)


@cache
def providers() -> Mapping[str, Provider]:
    """Return all providers by name: ours, and then the providers of other packages.

    A provider of another package that cannot be loaded, or has the name of another one or of its client, is left out
    with a warning.
    """
    found = {provider.name: provider for provider in our_providers()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            provider: Provider = point.load()
        except Exception as error:  # another package may raise anything
            _log.warning("provider %s is left out: %s: %s", point.value, type(error).__name__, error)
            continue
        if provider.name in found or provider.client.__name__ in {each.client.__name__ for each in found.values()}:
            _log.warning("provider %s is left out: another one has its name or that of its client", point.value)
        else:
            found[provider.name] = provider
    return found


def find_provider(name: str) -> Provider:
    """Find a provider by name.

    Raises:
        InputError: no provider has this name.
    """
    if name not in providers():
        raise bad_argument("endpoint", "api", name, providers())
    return providers()[name]


def client_provider(class_name: str) -> Provider | None:
    """Return the provider of a client by the path of its class; None for a client of HELM or of another package."""
    # A deployment can also name the module in which the client is.
    paths = {f"{module}.{each.client.__name__}": each for each in providers().values() for module in _modules(each)}
    return paths.get(current_name(class_name))


def _modules(provider: Provider) -> tuple[str, str]:
    return CLIENTS, provider.client.__module__


def library_provider(client: object) -> Provider | None:
    """Return the provider whose package a HELM client uses; None if it uses none of them."""
    if (own := getattr(client, "provider", None)) is not None:
        return own
    package = type(getattr(client, "client", None)).__module__.partition(".")[0]
    return next((each for each in providers().values() if each.package == package and each.reads_environment), None)


def helm_clients() -> Iterator[tuple[str, HelmClient]]:
    """Yield HELM's own clients for the providers: the names of their classes, and what is known of them."""
    for provider in providers().values():
        yield from provider.helm_clients.items()
