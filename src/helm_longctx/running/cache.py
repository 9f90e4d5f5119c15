"""HELM's request cache without the requests: a row is found by a digest of the server and the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import helm.common.cache as helm_cache
from helm.benchmark.executor import ExecutionSpec
from helm.clients.auto_client import AutoClient
from helm.clients.client import Client
from helm.common.cache import KeyValueStoreCacheConfig, SqliteCacheConfig
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.key_value_store import SqliteKeyValueStore, request_to_key

from helm_longctx.redaction.abbreviation import digest
from helm_longctx.running.attempt import Store, watched
from helm_longctx.running.cache_file import CacheFile
from helm_longctx.running.servers import server_digest

_server: ContextVar[str] = ContextVar("server", default="")
"""The server of the client that is being made, whose caches are made with it."""


class DigestStore(SqliteKeyValueStore):
    """The same file as HELM's store, with rows of our own.

    What HELM's own runner put there is not found: its rows do not tell which server gave an answer.

    Args:
        path: the file.
        server: whose replies they are; empty for caches that are of no deployment.
    """

    def __init__(self, path: str, server: str = ""):
        self._sqlite_dict = CacheFile(path)
        self._server = server

    def contains(self, key: Mapping[str, Any]) -> bool:
        """Whether it holds the server's reply to a request."""
        return super().contains(self._digest(key))

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The server's reply to a request; None if there is none."""
        found: dict[str, Any] | None = super().get(self._digest(key))
        return found

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Keep a reply."""
        super().put(self._digest(key), value)

    def _digest(self, key: Mapping[str, Any]) -> dict[str, str]:
        return {"sha256": digest(f"{self._server}\0{request_to_key(key)}")}


@dataclass(frozen=True)
class DigestCacheConfig(SqliteCacheConfig):
    """Names a `DigestStore` to HELM."""

    server: str


@dataclass(frozen=True)
class DigestCacheBackendConfig(SqliteCacheBackendConfig):
    """Gives every client of a run a `DigestStore`."""

    def get_cache_config(self, shard_name: str) -> DigestCacheConfig:
        """The shard's file is that of HELM's own runner.

        Raises:
            InputError: it cannot be used.
        """
        path = super().get_cache_config(shard_name).path
        CacheFile(path).check()
        return DigestCacheConfig(path, _server.get())


def with_digest_cache(spec: ExecutionSpec) -> ExecutionSpec:
    """The spec, its SQLite cache replaced by ours; no cache and MongoDB stay as the user chose.

    Raises:
        RuntimeError: this HELM makes its stores or its clients elsewhere.
    """
    theirs = spec.sqlite_cache_backend_config
    ours = digest_cache(theirs.path if theirs else "")
    return replace(spec, sqlite_cache_backend_config=ours) if theirs else spec


def digest_cache(folder: str) -> DigestCacheBackendConfig:
    """What makes the caches of HELM's clients, in files in a folder.

    Raises:
        RuntimeError: as `with_digest_cache`.
    """
    _hook_stores()
    _hook_clients()
    return DigestCacheBackendConfig(folder)


def _hook_stores() -> None:
    """HELM's caches open our stores, and every store knows of the attempt that it is opened for."""
    theirs = _hookable(helm_cache, "create_key_value_store")
    if theirs is None:
        return

    def create_key_value_store(config: KeyValueStoreCacheConfig) -> AbstractContextManager[Store]:
        ours = isinstance(config, DigestCacheConfig)
        opens = partial(DigestStore, config.path, config.server) if ours else partial(theirs, config)
        return watched(opens, repr(config))

    create_key_value_store.knows_longctx = True  # type: ignore[attr-defined]
    helm_cache.create_key_value_store = create_key_value_store


def _hook_clients() -> None:
    """The caches of a client are made for its server."""
    theirs = _hookable(AutoClient, "_get_client")
    if theirs is None:
        return

    def _get_client(self: AutoClient, model_deployment_name: str) -> Client:
        with _making_client_of(server_digest(model_deployment_name, self.credentials)):
            client: Client = theirs(self, model_deployment_name)
            return client

    _get_client.knows_longctx = True  # type: ignore[attr-defined]
    AutoClient._get_client = _get_client


def _hookable(owner: Any, name: str) -> Any:
    """HELM's function; None if it is ours already."""
    theirs = getattr(owner, name, None)
    if theirs is None:
        raise RuntimeError(f"helm-longctx: HELM's {name} is gone; this version of HELM is not supported")
    return None if getattr(theirs, "knows_longctx", False) else theirs


@contextmanager
def _making_client_of(server: str) -> Iterator[None]:
    token = _server.set(server)
    try:
        yield
    finally:
        _server.reset(token)
