"""HELM's request cache without the requests: a row is found by the request's digest, and holds the response alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import helm.common.cache as helm_cache
from helm.benchmark.executor import ExecutionSpec
from helm.common.cache import KeyValueStoreCacheConfig, SqliteCacheConfig
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.key_value_store import KeyValueStore, SqliteKeyValueStore, request_to_key

from helm_longctx.running.cache_file import CacheFile
from helm_longctx.running.lean import digest


class DigestStore(SqliteKeyValueStore):
    """The same file as HELM's store. What HELM's own runner put there is found too."""

    def __init__(self, path: str):
        self._sqlite_dict = CacheFile(path)

    def contains(self, key: Mapping[str, Any]) -> bool:
        """Whether it holds a response, under either key."""
        return super().contains(_short_key(key)) or super().contains(key)

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The response, under either key; None if there is none."""
        found: dict[str, Any] | None = super().get(_short_key(key)) or super().get(key)
        return found

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Keep a response under the digest."""
        super().put(_short_key(key), value)


@dataclass(frozen=True)
class DigestCacheConfig(SqliteCacheConfig):
    """Names a `DigestStore` to HELM."""


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
        return DigestCacheConfig(path)


def with_digest_cache(spec: ExecutionSpec) -> ExecutionSpec:
    """The spec, its SQLite cache replaced by ours; no cache and MongoDB stay as the user chose.

    Raises:
        RuntimeError: this HELM makes its stores elsewhere.
    """
    if spec.sqlite_cache_backend_config is None:
        return spec
    _register_store()
    return replace(spec, sqlite_cache_backend_config=DigestCacheBackendConfig(spec.sqlite_cache_backend_config.path))


def _register_store() -> None:
    theirs = getattr(helm_cache, "create_key_value_store", None)
    if theirs is None:
        raise RuntimeError("helm-longctx: HELM's create_key_value_store is gone; this version of HELM is not supported")
    if getattr(theirs, "knows_longctx", False):
        return

    def create_key_value_store(config: KeyValueStoreCacheConfig) -> KeyValueStore:
        return DigestStore(config.path) if isinstance(config, DigestCacheConfig) else theirs(config)

    create_key_value_store.knows_longctx = True  # type: ignore[attr-defined]
    helm_cache.create_key_value_store = create_key_value_store


def _short_key(key: Mapping[str, Any]) -> dict[str, str]:
    return {"sha256": digest(request_to_key(key))}
