"""The request cache: HELM's SQLite files. The key is a digest of the server and the request.

HELM's own keys are whole requests. They are as long as the prompts, and do not identify the server.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any
from weakref import finalize

from helm.benchmark.executor import ExecutionSpec
from helm.common.cache import SqliteCacheConfig
from helm.common.key_value_store import SqliteKeyValueStore, request_to_key

from helm_longctx.errors import InputError
from helm_longctx.helm.patches import apply_patches, client_in_the_making
from helm_longctx.helm_api import (
    NonRetriableException,
    SqliteCacheBackendConfig,
    get_model_deployment,
)
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.provider import providers
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.redaction.logs import warn_once
from helm_longctx.redaction.text import SECRET_NAME
from helm_longctx.runs.journal import GroupWriter

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

_Change = tuple[str, tuple[object, ...]]
"""A statement and its values."""

_IGNORED_ARGUMENTS = re.compile(
    rf"{SECRET_NAME.pattern}|authorization$|^(?:timeout|max_retries|stream|api_key_env|token_env)$|_per_minute$",
    re.IGNORECASE,
)
"""Client arguments that do not change answers. A new key reaches the same model, and no digest of a key is stored."""

_IN_CREDENTIALS = ("BaseUrl", "Endpoint", "Location", "ProjectId")
"""Suffixes of entries in HELM's credentials file that select the server; the prefix is the host organization."""


class DigestStore(SqliteKeyValueStore):
    """HELM's store with digests as keys.

    It shares the file with HELM's own runner, but does not find that runner's rows, which do not identify the server.
    The digest of the server is empty for a cache that belongs to no deployment.
    """

    def __init__(self, path: str, server: str = ""):
        self._sqlite_dict = open_cache_file(path)
        self._server = server

    def contains(self, key: Mapping[str, Any]) -> bool:
        """Whether there is a reply of the server to a request."""
        return self._row(key) in self._sqlite_dict

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the server's reply to a request, if there is one."""
        reply: dict[str, Any] | None = self._sqlite_dict.get(self._row(key))
        return reply

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Store the server's reply to a request."""
        self._sqlite_dict[self._row(key)] = value

    def put_durably(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Store the server's reply to a request as `add` does, for a reply that nothing else has."""
        self.add(self.name(key), value)

    def name(self, key: Mapping[str, Any]) -> str:
        """Return the digest that stands for a request to the server."""
        return digest(f"{self._server}\0{request_to_key(key)}")

    def add(self, name: str, value: dict[str, Any]) -> None:
        """Store a reply under its digest. It is on disk afterwards. Raises a `_CacheError` if it cannot be written."""
        self._sqlite_dict.add(_row_of(name), value)

    def _row(self, key: Mapping[str, Any]) -> str:
        return _row_of(self.name(key))


def _row_of(name: str) -> str:
    """Return the key of a row, in the form that HELM gives it."""
    return f'{{"sha256": "{name}"}}'


@dataclass(frozen=True)
class DigestCacheConfig(SqliteCacheConfig):
    """Makes HELM open a `DigestStore`."""

    server: str

    def open_store(self) -> DigestStore:
        """Return the store. It is not open yet."""
        return DigestStore(self.path, self.server)


@dataclass(frozen=True)
class DigestCacheBackendConfig(SqliteCacheBackendConfig):
    """Makes HELM give every client of a run a `DigestStore`."""

    def get_cache_config(self, shard_name: str) -> DigestCacheConfig:
        """Return the config of a shard, in HELM's own file, or raise an `InputError` if the file cannot be used."""
        path = super().get_cache_config(shard_name).path
        open_cache_file(path).check()
        # The server belongs to the client that HELM is making now; HELM's other caches belong to no server.
        client = client_in_the_making.get()
        return DigestCacheConfig(
            path, server_digest(client.deployment, client.credentials) if client else ""
        )


def with_digest_cache(spec: ExecutionSpec) -> ExecutionSpec:
    """Replace the SQLite cache of an execution spec by ours. With MongoDB or no cache the spec stays unchanged."""
    config = spec.sqlite_cache_backend_config
    ours = digest_cache(config.path if config else "")
    return replace(spec, sqlite_cache_backend_config=ours) if config else spec


def digest_cache(folder: str) -> DigestCacheBackendConfig:
    """Return the config of a cache. Raises a `RuntimeError` if this version of HELM makes stores in another way."""
    apply_patches()
    return DigestCacheBackendConfig(folder)


def server_digest(
    deployment: str,
    credentials: Mapping[str, Any],
    proxy: str | None = None,
) -> str:
    """Return the SHA-256 of a deployment's name, client, client arguments and address, without secrets.

    A proxy is a HELM server that gets the requests instead (`--server-url`). Raises a `ValueError` if the deployment is
    not registered.
    """
    registered = get_model_deployment(deployment)
    arguments = registered.client_spec.args or {}
    addresses = {}
    for name in _IN_CREDENTIALS:
        addresses[name] = credentials.get(f"{registered.host_organization}{name}", None)
    # HELM's own HTTP client prefers its variable to the deployment's address.
    variables = ["HELM_HTTP_MODEL_BASE_URL"]
    if not arguments.get("base_url"):
        # The libraries of providers take the address from variables if a deployment has none.
        for provider in providers().values():
            variables += provider.environment
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
        arguments = {}
        for name, part in value.items():
            if not _IGNORED_ARGUMENTS.search(str(name)):
                arguments[str(name)] = part
        return {
            name: _without_secrets(part)
            for name, part in arguments.items()
            if part is not None
        }
    if isinstance(value, list | tuple):
        return [_without_secrets(part) for part in value]
    # An address with and without a slash at the end is the same.
    return value.rstrip("/") if isinstance(value, str) else value


class _CacheError(InputError, NonRetriableException):
    """A file of the request cache cannot be used. The base class keeps HELM from retrying."""


class _CacheFile:
    """A SQLite file with rows as `SqliteDict` writes them, and the part of its interface that HELM's store uses.

    All threads share one connection, and what they write at the same time is committed together. `SqliteDict` itself
    is not used: it opens a connection and starts a thread for each request, and its thread ends when a commit fails, so
    that its callers wait forever.
    """

    def __init__(self, path: str):
        self._path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._wait = WAIT
        self._writer = GroupWriter(self._commit)
        # Threads that wait for the disk share one wait.
        self._durable_writer = GroupWriter(self._commit_durably)
        self._is_unwritable = False

    def __enter__(self) -> _CacheFile:
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing: the connection stays open."""

    def check(self) -> None:
        """Open the file for writing, also a new one. Raises a `_CacheError` if it cannot be used."""
        with self._open_connection() as connection:
            # Taking the write lock fails if the file is not writable or not a database.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")

    def get(self, key: str) -> Any:
        """Return the value of a key, if there is one. Raises a `_CacheError` if the file cannot be read."""
        with self._open_connection() as connection:
            row = connection.execute(
                "SELECT value FROM unnamed WHERE key = ?", (key,)
            ).fetchone()
            return self._value(key, row[0]) if row else None

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all keys and values, in the order of writing."""
        with self._name_errors(), closing(self._connect()) as connection:
            for key, data in connection.execute(
                "SELECT key, value FROM unnamed ORDER BY rowid"
            ):
                value = self._value(key, data)
                if value is not None:
                    yield key, value

    def __setitem__(self, key: str, value: Any) -> None:
        """Store a value. A failure is only logged, once, because the caller already has the answer."""
        self._writer.add((_INSERT, (key, _seal(key, value))))

    def __delitem__(self, key: str) -> None:
        self._writer.add(("DELETE FROM unnamed WHERE key = ?", (key,)))

    def commit(self) -> None:
        """Do nothing: each change is committed at once."""

    def add(self, key: str, value: Any) -> None:
        """Store a value. It is on disk when this method returns. Raises a `_CacheError` if it cannot be written."""
        self._durable_writer.add((_INSERT, (key, _seal(key, value))))

    def _value(self, key: str, data: bytes) -> Any:
        """Return a stored value, or None if it was changed or is another key's. Values of HELM have no digest."""
        if _SEAL.fullmatch(data, len(data) - _SEAL_SIZE) and data[-_DIGITS:] != _digest(
            key, data[:-_SEAL_SIZE]
        ):
            warn_once(
                f"the request cache {self._path}: answers were changed in it; they are"
                " asked for again"
            )
            return None
        return pickle.loads(data)  # noqa: S301  # the format of HELM's files

    def _commit_durably(self, changes: Sequence[_Change]) -> None:
        """Make changes that are on disk afterwards. If the disk is full, those are made that fit.

        Raises:
            _CacheError: one of the changes is not made.
        """
        try:
            self._commit_together(changes)
        except _CacheError:
            if len(changes) == 1:
                raise
            errors = []
            for change in changes:
                try:
                    self._commit_together([change])
                except _CacheError as error:
                    errors.append(error)
            if errors:
                raise errors[0] from None

    def _commit_together(self, changes: Sequence[_Change]) -> None:
        with self._name_errors(), closing(self._connect(is_durable=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement, values in changes:
                connection.execute(statement, values)
            connection.execute("COMMIT")

    def _commit(self, changes: Sequence[_Change]) -> None:
        """Make changes in one transaction. After a failed one, the next does not wait for locks."""
        try:
            with self._open_connection(
                0 if self._is_unwritable else WAIT
            ) as connection:
                connection.execute("BEGIN IMMEDIATE")
                for statement, values in changes:
                    connection.execute(statement, values)
                connection.execute("COMMIT")
        except _CacheError as error:
            if not self._is_unwritable:
                helm_log.warning(f"answers are not cached: {error}")
            self._is_unwritable = True
        else:
            self._is_unwritable = False

    @contextmanager
    def _open_connection(self, wait: float = WAIT) -> Iterator[sqlite3.Connection]:
        """Yield the connection to one thread at a time. It is opened again after an error, or for another file."""
        with self._lock, self._name_errors():
            try:
                if self._connection is None or self._identity != _identity(self._path):
                    self._close()
                    self._connection = self._connect()
                    self._identity = _identity(self._path)
                    self._wait = WAIT
                    finalize(self, self._connection.close).atexit = False
                if wait != self._wait:
                    self._connection.execute(f"PRAGMA busy_timeout={1000 * wait:.0f}")
                    self._wait = wait
                yield self._connection
            except BaseException:
                self._close()  # undoes what was not committed
                raise

    def _connect(self, is_durable: bool = False) -> sqlite3.Connection:
        """Open the file. Like HELM, a connection does not wait for the disk, unless it `is_durable`."""
        connection = sqlite3.connect(
            self._path,
            timeout=WAIT,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # A cache may lose its last entries in a power failure; the journal has the answers.
            connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'OFF'}")
            # SQLite's own journal stays as a file. To remove it after each commit takes longer than the commit.
            connection.execute("PRAGMA journal_mode=PERSIST")
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, pickle.UnpicklingError, EOFError) as error:
            remedy = next(
                (remedy for words, remedy in _REMEDIES.items() if words in str(error)),
                "remove that file",
            )
            what = f"the request cache {self._path} cannot be used ({error})"
            raise _CacheError(
                f"{what}: {remedy}, or give helm-run --disable-cache"
            ) from error


def open_cache_file(path: str) -> _CacheFile:
    """Return the one `_CacheFile` that this process has for a path. A connection cannot be used after a fork."""
    return _open_cache_file(path, os.getpid())


@lru_cache(maxsize=32)
def _open_cache_file(path: str, process: int) -> _CacheFile:
    return _CacheFile(path)


def _identity(path: str) -> tuple[int, int] | None:
    """Return a file's identity. Another file of the same name has another one. Returns None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _seal(key: str, value: Any) -> bytes:
    """Return a value as HELM's stores read it. Readers ignore the digest behind the end of the pickle."""
    data = pickle.dumps(value)
    return data + _SEAL_START + _digest(key, data)


def _digest(key: str, data: bytes) -> bytes:
    return (
        hashlib.sha256(key.encode("utf-8", "surrogatepass") + b"\0" + data)
        .hexdigest()
        .encode()
    )


_SEAL_START = b"\nsha256:"
_DIGITS = 64
_SEAL = re.compile(re.escape(_SEAL_START) + rb"[0-9a-f]{64}")
_SEAL_SIZE = len(_SEAL_START) + _DIGITS
