"""Gets the sources of data that tasks name, and describes the files that are there."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from helm_longctx.data.download import SOURCE, Source, describe_stored
from helm_longctx.data.release import Release, ReleaseFile, ensure_release_files
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError


def ensure(sources: Iterable[Source], root: DataRoot, command: str) -> None:
    """Download the files that sources lack, reading each archive once, or raise an `InputError`."""
    # Tasks of a category can name the same source.
    distinct = {tuple(source.paths): source for source in sources}.values()
    absent = [source for source in distinct if not source.is_present(root)]
    if absent and root.mirror:
        missing = []
        for source in absent:
            missing.extend(source.paths)
        raise root.missing_error(missing, command)
    members: dict[Release, list[str]] = {}
    for source in absent:
        if isinstance(source, ReleaseFile):
            members.setdefault(source.release, []).append(source.path)
        else:
            source.ensure(root, command)
            source.is_present(root)  # this tells NLTK where its model is now
    # The files of a release are fetched together, because each call reads its archive from the start.
    for release, paths in members.items():
        ensure_release_files(release, paths, root, command)


def find_lacking(
    sources: Iterable[Source],
    root: DataRoot,
    command: str,
) -> dict[str, InputError]:
    """Do what `ensure` does, but go on after a failure. Return the error of each file that is missing, by its path."""
    groups: dict[object, list[Source]] = {}
    for source in sources:
        key = source.release if isinstance(source, ReleaseFile) else tuple(source.paths)
        groups.setdefault(key, []).append(source)
    errors: dict[str, InputError] = {}
    for group in groups.values():
        try:
            ensure(group, root, command)
        except InputError as error:
            for source in group:
                errors |= dict.fromkeys(source.paths, error)
    return errors


def describe_files(
    sources: Iterable[Source],
    root: DataRoot,
) -> dict[str, dict[str, Any]]:
    """Return size, SHA-256 and origin of each file of sources that is there, by its path under the data root.

    A digest is taken from the record of the fetch if the file still has the recorded size. Otherwise it is computed.
    """
    described: dict[str, dict[str, Any]] = {}
    for source in sources:
        for path in source.paths:
            if root.has(path):
                described[path] = _describe_file(root / path)
    return described


def _describe_file(path: Path) -> dict[str, Any]:
    record = _read_record(path)
    stored = record.get("stored", {}).get(path.name, {})
    if stored.get("size") != path.stat().st_size:
        return describe_stored(path)
    origin = {}
    for name in ("repo", "commit", "url"):
        if name in record:
            origin[name] = record[name]
    return {**stored, **origin}


def _read_record(path: Path) -> Mapping[str, Any]:
    """Return the record of the fetch of a file. Without a record next to the file, it is empty."""
    for location in (path.with_name(path.name + SOURCE), path.with_name("source.json")):
        try:
            record = json.loads(location.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and isinstance(record.get("stored"), dict):
            return record
    return {}
