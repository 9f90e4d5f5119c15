"""Hub data sets, read from their parquet conversions: no remote code runs.

The hub keeps a parquet conversion of every public data set under the revision `refs/convert/parquet`. It is downloaded
by huggingface_hub (progress, resume, `HF_ENDPOINT`, `HF_TOKEN`), checked, and kept as JSON lines under the data root.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import orjson

from helm_longctx.errors import InputError
from helm_longctx.sources.root import DataRoot

PARQUET_REVISION = "refs/convert/parquet"
TIMEOUT = 30
"""Seconds for the first answer; huggingface_hub would wait for ever."""

_MIRROR = "put the data into a mirror folder and set HELM_LONGCTX_DATA"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HubDataset:
    """A data set on the hub.

    Args:
        name: as the official code loads it, `org/name` or `name`; it gives the folder under the data root.
        splits: split name to number of rows in the release that the benchmark used.
        config: configuration, if it has several.
        repo: where it lives now, if it was moved.
    """

    name: str
    splits: Mapping[str, int]
    config: str | None = None
    repo: str | None = None

    @property
    def folder(self) -> str:
        """Under the data root."""
        return "/".join(["hub", self.name.replace("/", "__"), *([self.config] if self.config else [])])

    @property
    def paths(self) -> list[str]:
        """Its files under the data root."""
        return [*(f"{self.folder}/{split}.jsonl" for split in self.splits), f"{self.folder}/features.json"]

    @property
    def repo_id(self) -> str:
        """Where to download it."""
        return self.repo or self.name


def ensure(dataset: HubDataset, root: DataRoot, command: str) -> Path:
    """The data set's folder under the root; into a cache it is downloaded if it is not there yet.

    Args:
        command: what a user types to get it, for the error.

    Raises:
        InputError: it is missing and may not be downloaded, or the download fails or is not what it should be.
    """
    folder = root / dataset.folder
    if all(root.has(path) for path in dataset.paths):
        return folder
    if root.mirror:
        raise root.missing(dataset.paths, command)
    _log.warning("fetching %s from the hub into %s", dataset.repo_id, folder)
    try:
        _fetch(dataset, folder)
    except Exception as error:
        # Anything: which HTTP library's errors come through depends on huggingface_hub's version.
        what = _explain(error, folder)
        raise InputError(f"hub data set {dataset.repo_id}: {what}; then run: {command}") from error
    return folder


def label_names(folder: Path, column: str) -> list[str]:
    """The names of a label column's values, in order.

    Raises:
        InputError: `features.json` does not have them.
    """
    path = folder / "features.json"
    try:
        features = json.loads(path.read_text(encoding="utf-8"))
        found = features.get("features", features)[column]
        names = found["names"] if isinstance(found, dict) else found
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{path}: no names for column {column!r}") from error
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError(f"{path}: the names of column {column!r} must be a list of strings")
    return names


def _fetch(dataset: HubDataset, folder: Path) -> None:
    from huggingface_hub import HfApi

    repo = dataset.repo_id
    info = HfApi().dataset_info(repo, revision=PARQUET_REVISION, timeout=TIMEOUT)
    if not info.sha:
        raise InputError(f"the hub names no commit of {PARQUET_REVISION}; check HF_ENDPOINT")
    available = sorted(file.rfilename for file in info.siblings or [] if file.rfilename.endswith(".parquet"))
    digests: dict[str, str] = {}
    files: dict[str, list[Path]] = {}
    for split in dataset.splits:
        names = [name for name in available if name.startswith(f"{dataset.config or 'default'}/{split}/")]
        if not names:
            raise InputError(f"no split {split!r} in its parquet conversion; {_MIRROR}")
        files[split] = [_download(repo, name, info.sha, digests) for name in names]
    source = {"repo": repo, "commit": info.sha, "files": digests, "rows": dict(dataset.splits)}
    _build(files, dataset.splits, source, folder)


def _download(repo: str, name: str, commit: str, digests: dict[str, str]) -> Path:
    """One file of a commit, checked against the digest that the hub gives for large files."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    expected = get_hf_file_metadata(hf_hub_url(repo, name, repo_type="dataset", revision=commit)).etag or ""
    path = Path(hf_hub_download(repo, name, repo_type="dataset", revision=commit))
    digests[name] = _sha256(path)
    if len(expected) == 64 and expected != digests[name]:
        # The link and what it points to: the hub's cache would serve the bad bytes again.
        for file in (path.resolve(), path):
            file.unlink(missing_ok=True)
        raise InputError(f"{name} has SHA-256 {digests[name]}, expected {expected}; it is deleted")
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _build(files: Mapping[str, list[Path]], splits: Mapping[str, int], source: object, folder: Path) -> None:
    """Convert into a folder of this process's own, then move, so that no reader and no other fetch sees a part."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
        part = Path(name)
        for split, paths in files.items():
            rows = 0
            with (part / f"{split}.jsonl").open("wb") as out:
                for rows, line in enumerate(chain.from_iterable(map(_lines, paths)), 1):  # noqa: B007
                    out.write(line)
            if rows != splits[split]:
                raise InputError(
                    f"split {split!r} has {rows} rows, expected {splits[split]}: not the benchmark's release; {_MIRROR}"
                )
        (part / "source.json").write_bytes(orjson.dumps(source, option=orjson.OPT_INDENT_2))
        (part / "features.json").write_bytes(orjson.dumps(_features(next(iter(files.values()))[0])))
        # features.json last: the data set is complete only with it.
        for file in [*(f"{split}.jsonl" for split in files), "source.json", "features.json"]:
            os.replace(part / file, folder / file)


def _lines(path: Path) -> Iterator[bytes]:
    """Rows of a parquet file as JSON lines, a batch in memory at a time."""
    from pyarrow import parquet

    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=1024):
            yield from (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
    except Exception as error:  # pyarrow raises OSError, ValueError and its own; orjson TypeError
        raise InputError(f"{path.resolve()} cannot be read ({type(error).__name__}); delete it") from error


def _features(path: Path) -> dict[str, list[str]]:
    """Label columns and their names, from what the `datasets` library leaves in a parquet file's schema."""
    from pyarrow import parquet

    metadata = parquet.read_schema(path).metadata or {}
    try:
        columns = orjson.loads(metadata.get(b"huggingface", b'{"info": {"features": {}}}'))["info"]["features"]
        return {name: column["names"] for name, column in columns.items() if column.get("_type") == "ClassLabel"}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path} has malformed label names; {_MIRROR}") from error


def _explain(error: Exception, folder: Path) -> str:
    """A failure and what to do, in one line. Of others' texts it has none: a URL in them can carry a token."""
    if isinstance(error, InputError):
        return str(error)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403, 404):
        return (
            f"no parquet conversion of it for this login ({status}); set HF_TOKEN to a token with access, or {_MIRROR}"
        )
    if status:
        return f"the hub answered {status}; wait, or {_MIRROR}"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, (ConnectionError, TimeoutError)):
        return f"{error.strerror}; check space and rights in {folder} and in HF_HUB_CACHE"
    return f"the download failed ({type(error).__name__}); check the network and HF_ENDPOINT, or {_MIRROR}"
