"""A file of HELM's request cache: what is wrong with it is told in one line."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from helm.common.hierarchical_logger import hwarn
from helm.proxy.retry import NonRetriableException

from helm_longctx.errors import InputError

WAIT = 30.0
"""Seconds to wait for another process that writes to the file."""

_TABLE = "CREATE TABLE IF NOT EXISTS unnamed (key TEXT PRIMARY KEY, value BLOB)"

_REMEDIES = {
    "locked": "wait until no other process uses it",
    "full": "make room on its disk",
    "disk I/O": "make room on its disk",
    "readonly": "let it be written",
    "unable to open": "let it be read and written",
}
"""What to do, by words of SQLite's errors. Of other errors the file is damaged, or no database."""

_unwritable: set[str] = set()
"""Files whose last write failed, which was told."""


class CacheError(InputError, NonRetriableException):
    """A file of the request cache cannot be used. HELM does not try again."""


class CacheFile:
    """The rows of a file as `SqliteDict`, which HELM's store uses, writes them; and as much of its interface.

    SqliteDict itself works in a thread that ends with a commit that fails, and then its callers wait for ever.
    """

    def __init__(self, path: str):
        self._path = path

    def __enter__(self) -> CacheFile:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is open."""

    def check(self) -> None:
        """Open the file for writing; it is made if it is not there.

        Raises:
            CacheError: it cannot be used.
        """
        with self._name_errors(), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")

    def get(self, key: str) -> Any:
        """The value of a key; None if there is none.

        Raises:
            CacheError: the file cannot be read.
        """
        with self._name_errors(), self._connection() as connection:
            row = connection.execute("SELECT value FROM unnamed WHERE key = ?", (key,)).fetchone()
            return _value(row[0]) if row else None

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def items(self) -> Iterator[tuple[str, Any]]:
        """All keys and values, as they were written."""
        with self._name_errors(), self._connection() as connection:
            for key, value in connection.execute("SELECT key, value FROM unnamed ORDER BY rowid"):
                yield key, _value(value)

    def __setitem__(self, key: str, value: Any) -> None:
        """Keep a value. Where that fails it is logged once and the value is not kept: whoever asked has the answer."""
        try:
            self._write("REPLACE INTO unnamed (key, value) VALUES (?, ?)", key, pickle.dumps(value))
        except CacheError as error:
            if self._path not in _unwritable:
                hwarn(f"answers are not cached: {error}")
            _unwritable.add(self._path)

    def __delitem__(self, key: str) -> None:
        self._write("DELETE FROM unnamed WHERE key = ?", key)

    def commit(self) -> None:
        """Each change is committed by itself."""

    def _write(self, statement: str, *values: object) -> None:
        """Once a write has failed, the next ones do not wait, until one succeeds."""
        with self._name_errors(), self._connection(0 if self._path in _unwritable else WAIT) as connection:
            connection.execute(statement, values)
        _unwritable.discard(self._path)

    @contextmanager
    def _connection(self, wait: float | None = None) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are committed at the end; without waiting for the disk, as HELM's are."""
        connection = sqlite3.connect(self._path, timeout=WAIT if wait is None else wait)
        try:
            connection.execute("PRAGMA synchronous=OFF")
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
    return pickle.loads(data)  # noqa: S301  # HELM's own form of its file
