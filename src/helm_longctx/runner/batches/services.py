"""Finds the service that answers the batches of a deployment, in the records of the providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from helm.clients.client import Client

from helm_longctx.errors import InputError
from helm_longctx.models.apis.batches import Service
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.apis.provider import Provider, providers


def find_service(name: str, client: ProviderClient, run_path: Path) -> Service:
    """Return the service with a name, as the record of a run's batches has it.

    Raises:
        InputError: no provider has such a service, for example because its package is not installed any more.
    """
    services = {service.name: service for provider in providers().values() for service in _services(provider)}
    if name not in services:
        raise InputError(f"there is no batch service {name!r}; choose from {', '.join(services)}")
    return services[name](client, run_path)


def service_name(client: Client, deployment: str, as_files: bool) -> str:
    """Return the name of the service that answers batches of a deployment.

    Raises:
        InputError: the deployment has none.
    """
    provider = getattr(client, "provider", None)
    service = provider and _service(provider, as_files)
    if service is None:
        clients = " or ".join(each.client.__name__ for each in providers().values() if _service(each, as_files))
        raise InputError(f"{deployment} has no batches; use a deployment with {clients} of helm_longctx.models.apis")
    return service.name


def _service(provider: Provider, as_files: bool) -> type[Service] | None:
    return provider.batch_files if as_files else provider.batches


def _services(provider: Provider) -> Iterator[type[Service]]:
    yield from filter(None, (provider.batches, provider.batch_files))
