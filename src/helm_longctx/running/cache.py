"""HELM's request cache without the requests: a row is found by a digest of the server and the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from helm.benchmark.executor import ExecutionSpec
from helm.common.cache import SqliteCacheConfig
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.key_value_store import SqliteKeyValueStore, request_to_key

from helm_longctx.helm.patches import apply_patches, client_in_the_making
from helm_longctx.redaction.lean import digest
from helm_longctx.running.cache_file import CacheFile
from helm_longctx.running.servers import server_digest


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
    """Opens a `DigestStore` for HELM."""

    server: str

    def open_store(self) -> DigestStore:
        """The store, not open yet."""
        return DigestStore(self.path, self.server)


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
        return DigestCacheConfig(path, _server_in_the_making())


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
    apply_patches()
    return DigestCacheBackendConfig(folder)


def _server_in_the_making() -> str:
    """The server of the client that is being made, whose caches are made with it; empty outside of that."""
    client = client_in_the_making.get()
    return server_digest(client.deployment, client.credentials) if client else ""
