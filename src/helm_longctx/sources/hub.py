"""Hub data sets, read from their parquet conversions: no remote code runs.

The hub keeps a parquet conversion of every public data set under the revision `refs/convert/parquet`. It is downloaded
by huggingface_hub (progress, resume, `HF_ENDPOINT`, `HF_TOKEN`), checked, and kept as JSON lines under the data root.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.errors import InputError
from helm_longctx.sources.root import DataRoot

PARQUET_REVISION = "refs/convert/parquet"

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
    with _failures_explained(dataset):
        _fetch(dataset, folder)
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

    info = HfApi().dataset_info(dataset.repo_id, revision=PARQUET_REVISION)
    available = sorted(file.rfilename for file in info.siblings or [])
    source: dict[str, Any] = {"repo": dataset.repo_id, "commit": info.sha, "files": {}, "rows": {}}
    features: dict[str, list[str]] = {}
    for split, rows in dataset.splits.items():
        names = [name for name in available if name.startswith(f"{dataset.config or 'default'}/{split}/")]
        if not names:
            raise InputError(f"hub data set {dataset.repo_id} has no split {split!r} in its parquet conversion")
        files = [_download(dataset.repo_id, name, str(info.sha), source["files"]) for name in names]
        features.update(_features(files[0]))
        source["rows"][split] = _convert(files, folder / f"{split}.jsonl", rows, f"{dataset.repo_id}, split {split!r}")
    _write(folder / "source.json", orjson.dumps(source, option=orjson.OPT_INDENT_2))
    # Last: the data set is complete only with it.
    _write(folder / "features.json", orjson.dumps(features))


def _download(repo: str, name: str, commit: str, digests: dict[str, str]) -> Path:
    """One file of a commit, checked against the digest that the hub gives for large files."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    path = Path(hf_hub_download(repo, name, repo_type="dataset", revision=commit))
    with path.open("rb") as file:
        digest = _sha256(file)
    expected = get_hf_file_metadata(hf_hub_url(repo, name, repo_type="dataset", revision=commit)).etag or ""
    if len(expected) == 64 and expected != digest:
        path.unlink()
        raise InputError(f"hub data set {repo}: {name} has SHA-256 {digest}, expected {expected}; fetch it again")
    digests[name] = digest
    return path


def _sha256(file: Any) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _features(path: Path) -> dict[str, list[str]]:
    """Label columns and their names, from what the `datasets` library leaves in a parquet file's schema."""
    from pyarrow import parquet

    metadata = parquet.read_schema(path).metadata or {}
    columns = orjson.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    return {name: column["names"] for name, column in columns.items() if column.get("_type") == "ClassLabel"}


def _convert(files: list[Path], target: Path, expected: int, what: str) -> int:
    """Rows of parquet files as JSON lines, a batch in memory at a time; the file appears when it is whole."""
    from pyarrow import parquet

    rows = 0
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    try:
        with part.open("wb") as out:
            for path in files:
                for batch in parquet.ParquetFile(path).iter_batches(batch_size=1024):
                    out.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
                    rows += batch.num_rows
        if rows != expected:
            raise InputError(
                f"hub data set {what} has {rows} rows, expected {expected}: it is not the benchmark's release"
            )
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return rows


def _write(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(content)
    os.replace(part, path)


@contextmanager
def _failures_explained(dataset: HubDataset) -> Iterator[None]:
    """Failures of the network, the hub, the disk and the files as one line. It names no URL: one can carry a token."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
    from pyarrow import ArrowException

    where = f"hub data set {dataset.repo_id}"
    mirror = "or put it into a mirror folder and set HELM_LONGCTX_DATA"
    try:
        yield
    except (GatedRepoError, RepositoryNotFoundError) as error:
        raise InputError(f"{where} is not there, or not for this login; set HF_TOKEN, {mirror}") from error
    except LocalEntryNotFoundError as error:
        raise InputError(f"{where}: the hub cannot be reached; try again, {mirror}") from error
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "no status")
        raise InputError(f"{where}: the hub answered {status}; try again, {mirror}") from error
    except (ArrowException, orjson.JSONDecodeError) as error:
        raise InputError(f"{where}: a parquet file cannot be read ({type(error).__name__}); fetch it again") from error
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{where}: {error.strerror}") from error
        # Which HTTP library is used, and so whose errors come through, depends on huggingface_hub's version.
        if type(error).__module__.startswith(("http", "requests", "urllib3", "huggingface_hub")):
            raise InputError(
                f"{where}: the hub cannot be reached ({type(error).__name__}); try again, {mirror}"
            ) from error
        raise
