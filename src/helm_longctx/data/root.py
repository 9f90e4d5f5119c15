"""The data root: the folder that all data is read from. A user's mirror and the cache have the same layout.

<root>/helmet/...                       files of HELMET's release (other benchmarks: a folder of their own)
<root>/hub/<org>__<name>[/<config>]/    hub data sets as JSON lines
<root>/tokenizers/<org>__<name>/        saved fast tokenizers
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from helm_longctx.errors import InputError, list_first
from helm_longctx.run_settings import MIRROR, settings_in_use

_CACHE_NAME = "helm_longctx"

USE_A_MIRROR = "put the data into a mirror folder and set HELM_LONGCTX_DATA"
"""The remedy that errors suggest for any failed download."""

_CHUNK = 2**20
"""Bytes of a file that are in memory at a time."""


def digest_files(paths: Iterable[Path]) -> str | None:
    """Return the SHA-256 of the names and contents of those files that can be read. Returns None if there are none."""
    sha = hashlib.sha256()
    is_any_read = False
    for path in paths:
        with suppress(OSError), path.open("rb") as file:
            is_any_read = True
            sha.update(f"{path.name}\0".encode())
            for chunk in iter(partial(file.read, _CHUNK), b""):
                sha.update(chunk)
    return sha.hexdigest() if is_any_read else None


_MOST_NAMES = 40
"""Number of missing files that an error names."""


@dataclass(frozen=True)
class DataRoot:
    """A folder that holds data. One that the user named is a mirror, into which nothing is downloaded."""

    path: Path
    mirror: bool

    @staticmethod
    def find(benchmark_output: str | Path = "benchmark_output") -> DataRoot:
        """Return the mirror that `HELM_LONGCTX_DATA` names, or the cache; an `InputError` if it is no folder."""
        mirror = settings_in_use().mirror
        if mirror is None:
            return DataRoot(
                Path(benchmark_output) / "scenarios" / _CACHE_NAME, mirror=False
            )
        # Without this check, a misspelled folder would be reported as missing files.
        if not mirror.is_dir():
            raise InputError(
                f"{MIRROR}={str(mirror)!r} is not a folder; set it to a mirror folder, or unset it"
            )
        return DataRoot(mirror, mirror=True)

    def __truediv__(self, relative: str) -> Path:
        return self.path / relative

    def has(self, relative: str) -> bool:
        """Return whether the file exists under the root."""
        return (self.path / relative).is_file()

    def find_absent(self, paths: Iterable[str], fetch: str) -> list[str]:
        """Return those files that have to be downloaded, or raise an `InputError` if a mirror lacks them."""
        absent = []
        for path in dict.fromkeys(paths):
            if not self.has(path):
                absent.append(path)
        if absent and self.mirror:
            raise self.missing_error(absent, fetch)
        return absent

    def missing_error(self, paths: list[str], fetch: str) -> InputError:
        """Return the error for missing files. It names them, of many the first ones, and the command that gets them."""
        absent = []
        for path in paths:
            if not self.has(path):
                absent.append(path)
        names = list_first(absent, _MOST_NAMES)
        where = str(self.path)
        if self.mirror:
            where = f"{MIRROR}={where!r} (a mirror: nothing is downloaded)"
        return InputError(f"{where} lacks {names}; get it with: {fetch}")
