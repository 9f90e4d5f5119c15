"""Hub data sets, read from their parquet conversions, and single files of hub repositories: no remote code runs.

The hub keeps a parquet conversion of every public data set under the revision `refs/convert/parquet`. It is downloaded
by huggingface_hub (progress, resume, `HF_ENDPOINT`, `HF_TOKEN`), checked, and kept as JSON lines under the data root.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import orjson

from helm_longctx.errors import InputError
from helm_longctx.sources.download import check_space, explain_failures, sha256_of
from helm_longctx.sources.root import USE_A_MIRROR, DataRoot
from helm_longctx.sources.unpack import unzip

PARQUET_REVISION = "refs/convert/parquet"
TIMEOUT = 30
"""Seconds for the first answer; huggingface_hub would wait for ever."""

SOURCE = ".source.json"
"""Beside a file of a repository: which repository, commit and digest."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HubDataset:
    """A data set on the hub.

    Args:
        name: as the official code loads it, `org/name` or `name`; it gives the folder under the data root.
        splits: split name to number of rows in the release that the benchmark used.
        config: configuration, if it has several and they have folders of their own.
        repo: where it lives now, if it was moved.
        parquet: the configuration's name in the conversion, if it is not the folder's.
        columns: for a split, the columns that are kept, where not all are wanted.
        labelled: whether it has columns of label numbers, whose names are kept beside the rows.
    """

    name: str
    splits: Mapping[str, int]
    config: str | None = None
    repo: str | None = None
    parquet: str = "default"
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labelled: bool = True

    @property
    def folder(self) -> str:
        """Under the data root."""
        return "/".join(["hub", self.name.replace("/", "__"), *([self.config] if self.config else [])])

    @property
    def paths(self) -> list[str]:
        """Its files under the data root."""
        names = [*(f"{split}.jsonl" for split in self.splits), *(["features.json"] if self.labelled else [])]
        return [f"{self.folder}/{name}" for name in names]

    @property
    def repo_id(self) -> str:
        """Where to download it."""
        return self.repo or self.name


@dataclass(frozen=True)
class HubFile:
    """One file of a hub repository.

    Args:
        repo: `org/name`.
        name: in the repository.
        path: under the data root.
        kind: of the repository.
        setting: an environment variable that can name another repository that holds the same file.
    """

    repo: str
    name: str
    path: str
    kind: Literal["dataset", "model"] = "dataset"
    setting: str | None = None

    @property
    def paths(self) -> list[str]:
        """Its file under the data root."""
        return [self.path]

    def origin(self, root: DataRoot) -> str:
        """The repository that the file under the root came from, as far as is known."""
        record = root / (self.path + SOURCE)
        return str(json.loads(record.read_text(encoding="utf-8"))["repo"]) if record.is_file() else self.repo


@dataclass(frozen=True)
class HubZip:
    """One member of a zip file in a hub data set repository.

    Args:
        repo: `org/name`.
        name: the zip file in the repository.
        member: the file in it, with or without its folder.
        path: under the data root.
    """

    repo: str
    name: str
    member: str
    path: str

    @property
    def paths(self) -> list[str]:
        """Its file under the data root."""
        return [self.path]


def ensure_dataset(dataset: HubDataset, root: DataRoot, command: str) -> Path:
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
        raise root.missing_error(dataset.paths, command)
    _log.warning("fetching %s from the hub into %s", dataset.repo_id, folder)
    with explain_failures(
        f"hub data set {dataset.repo_id}", folder, command, "it has no parquet conversion, or not for this login"
    ):
        _fetch(dataset, folder)
    return folder


def ensure_hub_file(file: HubFile, root: DataRoot, command: str) -> None:
    """Have the file under the root; into a cache it is downloaded if it is not there yet.

    Raises:
        InputError: it is missing and may not be downloaded, or the download fails or is not what it should be.
    """
    if root.has(file.path):
        return
    if root.mirror:
        raise root.missing_error(file.paths, command)
    repo = os.environ.get(file.setting or "") or file.repo
    target = root / file.path
    _log.warning("fetching %s of %s from the hub into %s", file.name, repo, target.parent)
    copy = f"set {file.setting} to a repository with a copy of it, or " if file.setting else ""
    with explain_failures(f"{file.name} of hub {file.kind} {repo}", target.parent, command, helps=copy + USE_A_MIRROR):
        path, source = _download_latest(repo, file.name, file.kind)
        _place(target, source, lambda part: shutil.copyfile(path, part))


def ensure_zip_member(zipped: HubZip, root: DataRoot, command: str) -> None:
    """Have the member under the root; into a cache the zip file is downloaded and the member unpacked from it.

    Raises:
        InputError: it is missing and may not be downloaded, the download fails, or the zip file does not have it.
    """
    if root.has(zipped.path):
        return
    if root.mirror:
        raise root.missing_error(zipped.paths, command)
    target = root / zipped.path
    _log.warning("fetching %s of %s from the hub into %s", zipped.name, zipped.repo, target.parent)
    with explain_failures(f"{zipped.name} of hub dataset {zipped.repo}", target.parent, command):
        path, source = _download_latest(zipped.repo, zipped.name, "dataset")
        _place(target, source, lambda part: unzip(path, zipped.member, part))


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
        names = [name for name in available if name.startswith(f"{dataset.config or dataset.parquet}/{split}/")]
        if not names:
            raise InputError(f"no split {split!r} in its parquet conversion; {USE_A_MIRROR}")
        files[split] = [download(repo, name, info.sha, digests) for name in names]
    source = {"repo": repo, "commit": info.sha, "files": digests, "rows": dict(dataset.splits)}
    _build(files, dataset, source, folder)


def _download_latest(repo: str, name: str, kind: Literal["dataset", "model"]) -> tuple[Path, dict[str, object]]:
    """A file of the repository's present commit, checked, and where it came from."""
    from huggingface_hub import HfApi

    info = HfApi().repo_info(repo, repo_type=kind, timeout=TIMEOUT)
    if not info.sha:
        raise InputError("the hub names no commit; check HF_ENDPOINT")
    digests: dict[str, str] = {}
    path = download(repo, name, info.sha, digests, kind)
    return path, {"repo": repo, "commit": info.sha, "files": digests}


def _place(target: Path, source: object, write: Callable[[Path], object]) -> None:
    """Write into a folder of this process's own, then move, with a record of the source beside it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as name:
        data, record = Path(name) / "data", Path(name) / "source"
        write(data)
        record.write_bytes(orjson.dumps(source, option=orjson.OPT_INDENT_2))
        os.replace(record, target.with_name(target.name + SOURCE))
        os.replace(data, target)


def download(
    repo: str, name: str, commit: str, digests: dict[str, str], kind: Literal["dataset", "model"] = "dataset"
) -> Path:
    """One file of a commit, checked against the digest that the hub gives for large files.

    Args:
        digests: gets the file's SHA-256.

    Raises:
        InputError: the digest is another, or there is no room for it in the hub's cache.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.constants import HF_HUB_CACHE

    metadata = get_hf_file_metadata(hf_hub_url(repo, name, repo_type=kind, revision=commit))
    expected = metadata.etag or ""
    if not isinstance(try_to_load_from_cache(repo, name, repo_type=kind, revision=commit), str):
        Path(HF_HUB_CACHE).mkdir(parents=True, exist_ok=True)
        check_space(Path(HF_HUB_CACHE), metadata.size or 0)
    path = Path(hf_hub_download(repo, name, repo_type=kind, revision=commit))
    digests[name] = sha256_of(path)
    if len(expected) == 64 and expected != digests[name]:
        # The link and what it points to: the hub's cache would serve the bad bytes again.
        for file in (path.resolve(), path):
            file.unlink(missing_ok=True)
        raise InputError(f"{name} has SHA-256 {digests[name]}, expected {expected}; it is deleted")
    return path


def _build(files: Mapping[str, list[Path]], dataset: HubDataset, source: object, folder: Path) -> None:
    """Convert into a folder of this process's own, then move, so that no reader and no other fetch sees a part."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
        part = Path(name)
        for split, paths in files.items():
            rows = 0
            with (part / f"{split}.jsonl").open("wb") as out:
                for path in paths:
                    for line in _lines(path, dataset.columns.get(split)):
                        out.write(line)
                        rows += 1
            if rows != (expected := dataset.splits[split]):
                raise InputError(
                    f"split {split!r} has {rows} rows, expected {expected}: not the benchmark's release; {USE_A_MIRROR}"
                )
        (part / "source.json").write_bytes(orjson.dumps(source, option=orjson.OPT_INDENT_2))
        (part / "features.json").write_bytes(orjson.dumps(_features(next(iter(files.values()))[0])))
        # The data set is complete with its last split or, where it is needed, features.json.
        for file in ["source.json", *(f"{split}.jsonl" for split in files), "features.json"]:
            os.replace(part / file, folder / file)


def _lines(path: Path, columns: tuple[str, ...] | None) -> Iterator[bytes]:
    """Rows of a parquet file as JSON lines, a batch in memory at a time; rows can be whole books."""
    from pyarrow import parquet

    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=64, columns=columns and list(columns)):
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
        raise InputError(f"{path} has malformed label names; {USE_A_MIRROR}") from error
