"""The request cache: HELM's SQLite files, in which the key is a digest of the server and the request.

HELM's own keys are whole requests, which are as long as the prompts, and do not identify the server.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.model_deployment_registry import get_model_deployment
from helm.common.cache import SqliteCacheConfig
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import SqliteKeyValueStore, request_to_key
from helm.proxy.retry import NonRetriableException

from helm_longctx.errors import InputError
from helm_longctx.helm.patches import apply_patches, client_in_the_making
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.redaction.text import SECRET_NAME

WAIT = 30.0
"""Seconds to wait for another process that is writing to the file."""

_TABLE = "CREATE TABLE IF NOT EXISTS unnamed (key TEXT PRIMARY KEY, value BLOB)"
_INSERT = "REPLACE INTO unnamed (key, value) VALUES (?, ?)"

_REMEDIES = {
    "locked": "wait until no other process uses it",
    "full": "make room on its disk",
    "disk I/O": "make room on its disk",
    "readonly": "make it writable",
    "unable to open": "make it readable and writable",
}
"""What to do, by words in SQLite's error. At any other error the file is damaged or not a database."""

_unwritable: set[str] = set()
"""Files whose last write failed. The failure was logged."""

_IGNORED_ARGUMENTS = re.compile(
    rf"{SECRET_NAME.pattern}|authorization$|^(?:timeout|max_retries|stream|api_key_env)$|_per_minute$", re.IGNORECASE
)
"""Client arguments that do not change answers. A new key reaches the same model, and no digest of a key is stored."""

_IN_CREDENTIALS = ("BaseUrl", "Endpoint", "Location", "ProjectId")
"""Suffixes of entries in HELM's credentials file that select the server; the prefix is the host organization."""

_IN_ENVIRONMENT = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL")
"""Variables from which the providers' libraries take the address if a deployment has none."""


class DigestStore(SqliteKeyValueStore):
    """HELM's store with digests as keys.

    It shares the file with HELM's own runner, but does not find that runner's rows, which do not identify the server.

    Args:
        path: the SQLite file.
        server: digest of the server; empty for a cache that belongs to no deployment.
    """

    def __init__(self, path: str, server: str = ""):
        self._sqlite_dict = CacheFile(path)
        self._server = server

    def contains(self, key: Mapping[str, Any]) -> bool:
        """Whether there is a reply of the server to a request."""
        return super().contains(self._digest(key))

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the server's reply to a request; None if there is none."""
        reply: dict[str, Any] | None = super().get(self._digest(key))
        return reply

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Store a reply."""
        super().put(self._digest(key), value)

    def name(self, key: Mapping[str, Any]) -> str:
        """Return the digest that stands for a request to the server."""
        return digest(f"{self._server}\0{request_to_key(key)}")

    def add(self, name: str, value: dict[str, Any]) -> None:
        """Store the reply to the request with a digest. It is on disk when this method returns.

        Raises:
            CacheError: the file cannot be written.
        """
        self._sqlite_dict.add(request_to_key({"sha256": name}), value)

    def _digest(self, key: Mapping[str, Any]) -> dict[str, str]:
        return {"sha256": self.name(key)}


@dataclass(frozen=True)
class DigestCacheConfig(SqliteCacheConfig):
    """Makes HELM open a `DigestStore`."""

    server: str

    def open_store(self) -> DigestStore:
        """Return the store, which is not open yet."""
        return DigestStore(self.path, self.server)


@dataclass(frozen=True)
class DigestCacheBackendConfig(SqliteCacheBackendConfig):
    """Makes HELM give every client of a run a `DigestStore`."""

    def get_cache_config(self, shard_name: str) -> DigestCacheConfig:
        """Return the config of a shard, in the same file as HELM's own runner uses.

        Raises:
            InputError: the file cannot be used.
        """
        path = super().get_cache_config(shard_name).path
        CacheFile(path).check()
        return DigestCacheConfig(path, _current_server())


def with_digest_cache(spec: ExecutionSpec) -> ExecutionSpec:
    """Replace the SQLite cache of an execution spec by ours. MongoDB, or no cache, stays.

    Raises:
        RuntimeError: this version of HELM makes its stores or clients in another way.
    """
    config = spec.sqlite_cache_backend_config
    ours = digest_cache(config.path if config else "")
    return replace(spec, sqlite_cache_backend_config=ours) if config else spec


def digest_cache(folder: str) -> DigestCacheBackendConfig:
    """Return the config of a cache in a folder, and make HELM open our stores.

    Raises:
        RuntimeError: as `with_digest_cache`.
    """
    apply_patches()
    return DigestCacheBackendConfig(folder)


def _current_server() -> str:
    """Return the digest of the server whose client, with its caches, HELM is making; empty outside of that."""
    client = client_in_the_making.get()
    return server_digest(client.deployment, client.credentials) if client else ""


def server_digest(deployment: str, credentials: Mapping[str, Any], proxy: str | None = None) -> str:
    """Return the SHA-256 of a deployment's name, client, client arguments and address, without secrets.

    Args:
        deployment: name of a deployment that is registered in HELM.
        credentials: the content of HELM's credentials file.
        proxy: address of a HELM server that gets the requests instead (`--server-url`).

    Raises:
        ValueError: the deployment is not registered.
    """
    registered = get_model_deployment(deployment)
    arguments = registered.client_spec.args or {}
    addresses = {name: credentials.get(f"{registered.host_organization}{name}", None) for name in _IN_CREDENTIALS}
    # HELM's own HTTP client prefers its variable to the deployment's address.
    variables = ("HELM_HTTP_MODEL_BASE_URL", *(() if arguments.get("base_url") else _IN_ENVIRONMENT))
    parts = {
        "deployment": registered.name,
        "client": registered.client_spec.class_name,
        "arguments": arguments,
        "credentials": addresses,
        "environment": {name: os.environ.get(name) for name in variables},
        "proxy": proxy,
    }
    return digest(json.dumps(_without_secrets(parts), sort_keys=True, default=repr))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        arguments = {str(name): part for name, part in value.items() if not _IGNORED_ARGUMENTS.search(str(name))}
        return {name: _without_secrets(part) for name, part in arguments.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_without_secrets(part) for part in value]
    # The same address, written with and without a slash at the end.
    return value.rstrip("/") if isinstance(value, str) else value


class CacheError(InputError, NonRetriableException):
    """A file of the request cache cannot be used. The base class keeps HELM from retrying."""


class CacheFile:
    """A SQLite file with rows as `SqliteDict` writes them, and the part of its interface that HELM's store uses.

    `SqliteDict` itself is not used: its worker thread ends when a commit fails, and then its callers wait forever.
    """

    def __init__(self, path: str):
        self._path = path

    def __enter__(self) -> CacheFile:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing: no connection stays open between calls."""

    def check(self) -> None:
        """Open the file for writing, and create it if it does not exist.

        Raises:
            CacheError: the file cannot be used.
        """
        with self._name_errors(), self._connection() as connection:
            # Takes the write lock, which fails if the file is not writable or not a database.
            connection.execute("BEGIN IMMEDIATE")

    def get(self, key: str) -> Any:
        """Return the value of a key; None if there is none.

        Raises:
            CacheError: the file cannot be read.
        """
        with self._name_errors(), self._connection() as connection:
            row = connection.execute("SELECT value FROM unnamed WHERE key = ?", (key,)).fetchone()
            return _value(row[0]) if row else None

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all keys and values, in the order of writing."""
        with self._name_errors(), self._connection() as connection:
            for key, value in connection.execute("SELECT key, value FROM unnamed ORDER BY rowid"):
                yield key, _value(value)

    def __setitem__(self, key: str, value: Any) -> None:
        """Store a value. A failure is only logged, once, because the caller already has the answer."""
        try:
            self._write(_INSERT, key, pickle.dumps(value))
        except CacheError as error:
            if self._path not in _unwritable:
                hwarn(f"answers are not cached: {error}")
            _unwritable.add(self._path)

    def add(self, key: str, value: Any) -> None:
        """Store a value. It is on disk when this method returns.

        Raises:
            CacheError: the file cannot be written.
        """
        with self._name_errors(), self._connection(is_durable=True) as connection:
            connection.execute(_INSERT, (key, pickle.dumps(value)))

    def __delitem__(self, key: str) -> None:
        self._write("DELETE FROM unnamed WHERE key = ?", key)

    def commit(self) -> None:
        """Do nothing: each change is committed at once."""

    def _write(self, statement: str, *values: object) -> None:
        """Execute a statement. After a failed write, further writes do not wait for locks until one succeeds."""
        with self._name_errors(), self._connection(0 if self._path in _unwritable else WAIT) as connection:
            connection.execute(statement, values)
        _unwritable.discard(self._path)

    @contextmanager
    def _connection(self, wait: float | None = None, is_durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a connection and commit at the end. Like HELM, it does not wait for the disk, unless it `is_durable`."""
        connection = sqlite3.connect(self._path, timeout=WAIT if wait is None else wait)
        try:
            # A cache may lose its last entries in a power failure; the journal has the answers.
            connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'OFF'}")
            connection.execute(_TABLE)
            with connection:
                yield connection
        finally:
            connection.close()

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, pickle.UnpicklingError, EOFError) as error:
            raise CacheError(
                f"the request cache {self._path} cannot be used ({error}): {_remedy(str(error))}, or give helm-run "
                "--disable-cache"
            ) from error


def _remedy(error: str) -> str:
    return next((remedy for words, remedy in _REMEDIES.items() if words in error), "remove that file")


def _value(data: bytes) -> Any:
    return pickle.loads(data)  # noqa: S301  # the format of HELM's files
