"""Downloads data sets and single files from the Hugging Face hub. No remote code runs.

Parquet files of the repository itself are read where it has them. Otherwise the hub's conversion to parquet is read, in
the revision `refs/convert/parquet`. The hub stops a conversion at 5 GB a split, and then the folders of all splits are
called `partial-…`: these are refused. huggingface_hub downloads the files (with progress, resuming, `HF_ENDPOINT` and
`HF_TOKEN`); this module checks them and stores the rows as JSON lines under the data root. The `datasets` library is
not used: its older versions run the loading scripts of data sets, and it keeps another copy of the data in a cache of
its own.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, NamedTuple, cast
from urllib.parse import quote

import orjson

from helm_longctx.data.download import (
    ASK_SECONDS,
    SOURCE,
    Description,
    Pin,
    ResumingStream,
    SingleFile,
    Source,
    check_space,
    describe_stored,
    fetch_description,
    place_file,
    run_within,
    sha256_of,
    warn_if_changed,
)
from helm_longctx.data.jsonl import (
    JSON,
    JsonArray,
    JsonLines,
    first_json_content,
    read_first_row,
)
from helm_longctx.data.root import USE_A_MIRROR, DataRoot
from helm_longctx.data.unpack import MOST_NAMED, check_ratio, first_in_zip, unzip
from helm_longctx.errors import InputError, ShapeError
from helm_longctx.run_settings import check_repository_setting, settings_in_use

_PARQUET_REVISION = "refs/convert/parquet"
_PARQUET = ".parquet"
"""The end of the names of parquet files."""
_JSON_LINES = ".jsonl"
"""The end of the names of files with a row on each line."""
_PARTIAL = "partial-"
"""Start of the names of all splits in the conversion of a data set that is too large to be converted whole."""
_FIRST_DIGITS = re.compile("[0-9a-f]{7,39}")
"""The first digits of a commit. Public material often names these instead of all 40."""
_MORE_THAN_ANNOUNCED = 16 << 20
"""Bytes by which a download may exceed its announced size. huggingface_hub reads pieces of 10 MB, of which it writes none
that comes after this limit."""
Kind = Literal["dataset", "model"]
"""The kinds of repositories."""

LOCK_TIMEOUT = 30
"""Seconds to wait for another fetch that writes the same record."""


@dataclass(frozen=True)
class _ParquetFiles:
    """Where the splits of a data set are.

    Args:
        files: the names of the files of each split.
        is_conversion: whether the files are the hub's conversion, whose commits are not the repository's.
    """

    commit: str
    files: Mapping[str, list[str]]
    is_conversion: bool


@dataclass(frozen=True)
class HubDataset(Source):
    """A data set on the hub.

    Args:
        name: name that the official code loads, `org/name` or `name`. It determines the folder under the data root.
        splits: number of rows of each split in the release that the benchmark used; 0 if it is not known.
        repo: current repository, if the data set was moved.
        parquet: name of the configuration in the parquet conversion, if it differs from the name of the folder.
        commit: commit of the repository, or its first digits. An empty one stands for the latest. The hub's conversion
            has commits of its own.
        files: names of a split's files in the repository, where they are not `data/SPLIT-…` or, for a configuration,
            `CONFIG/SPLIT-…`: parquet files, JSON files that are an array of rows, or files of JSON lines (`.jsonl`).
        sha256: SHA-256 of files of the repository, by name, where they are known.
        columns: columns to keep, for splits from which not all columns are needed.
        labelled: whether it has columns of label numbers. The names of the labels are stored next to the rows.
    """

    name: str
    splits: Mapping[str, int]
    config: str | None = None
    repo: str | None = None
    parquet: str = "default"
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labelled: bool = True
    commit: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)

    title = "hub data set {0.repo_id}"
    refusal = "it has no parquet conversion, or your login has no access to it"

    @property
    def folder(self) -> str:
        """Its folder under the data root."""
        return "/".join(
            [
                "hub",
                self.name.replace("/", "__"),
                *([self.config] if self.config else []),
            ]
        )

    @property
    def paths(self) -> list[str]:
        """Its files under the data root."""
        names = [
            *(f"{split}.jsonl" for split in self.splits),
            *(["features.json"] if self.labelled else []),
        ]
        return [f"{self.folder}/{name}" for name in names]

    @property
    def repo_id(self) -> str:
        """The repository to download it from."""
        return self.repo or self.name

    def fetch(self, folder: Path) -> None:
        """Download the splits, and store them as JSON lines in a temporary folder. Then move them to `folder`.

        The moves are atomic, so no reader and no other process sees a partial file.
        """
        located = self.find_files()
        digests: dict[str, str] = {}
        files: dict[str, list[Path]] = {}
        for split, names in located.files.items():
            files[split] = []
            for name in names:
                sha256 = self.sha256.get(name, "")
                path = download(
                    self.repo_id, name, located.commit, digests, sha256=sha256
                )
                files[split].append(path)
        source: dict[str, object] = {
            "repo": self.repo_id,
            "commit": located.commit,
            "is_conversion": located.is_conversion,
            "files": digests,
            "rows": dict(self.splits),
        }
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
            part = Path(name)
            for split, paths in files.items():
                rows = _read_files(paths, self.columns.get(split))
                _write_rows(
                    part / f"{split}.jsonl",
                    rows,
                    expected=self.splits[split],
                    packed=sum(path.stat().st_size for path in paths),
                    what=f"split {split!r}",
                )
            stored = [f"{split}.jsonl" for split in files]
            source["stored"] = {name: describe_stored(part / name) for name in stored}
            warn_if_changed(folder / "source.json", source, self.label)
            (part / "source.json").write_bytes(
                orjson.dumps(source, option=orjson.OPT_INDENT_2)
            )
            first = next(iter(files.values()))[0]
            labels = _features(first) if first.suffix == _PARQUET else {}
            (part / "features.json").write_bytes(orjson.dumps(labels))
            # A data set is complete if all its `paths` exist. source.json is not among them, so it is moved first.
            for file in ["source.json", *stored, "features.json"]:
                os.replace(part / file, folder / file)

    @property
    def pin(self) -> Pin:
        """The commit, the names or their starts, and the digests that are checked."""
        files = list(chain.from_iterable(self.files.values()))
        if not files:
            files = [f"{self._own_folder}/{split}-" for split in self.splits]
        return Pin(self.repo_id, "dataset", self.commit, tuple(files), self.sha256)

    def first_rows(self) -> Mapping[str, bytes]:
        """Return the first row of each split."""
        located = self.find_files()
        contents: dict[str, bytes] = {}
        for split, names in located.files.items():
            with _open_on_hub(self.repo_id, names[0], located.commit) as file:
                row = _first_row(file, names[0], self.columns.get(split))
                content = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
                contents[f"{self.folder}/{split}.jsonl"] = content
                if self.labelled:
                    contents[f"{self.folder}/features.json"] = orjson.dumps(
                        _features(file)
                    )
        return contents

    def find_differences(self) -> list[str]:
        """Compare the numbers of rows, and the digests that are known. Only the ends of the files are read."""
        located = self.find_files()
        differences = []
        known: dict[str, str] = {}
        for split, names in located.files.items():
            known |= {name: self.sha256[name] for name in names if name in self.sha256}
            if not all(name.endswith(_PARQUET) for name in names):
                continue  # the rows of another file can be counted only by reading it
            rows = 0
            for name in names:
                with _open_on_hub(self.repo_id, name, located.commit) as file:
                    rows += _count_parquet_rows(file)
            expected = self.splits[split]  # 0 if the number is not known
            if expected and rows != expected:
                differences.append(
                    f"split {split} has {rows:,} rows, expected {expected:,}"
                )
        return differences + _compare_digests(self.repo_id, located.commit, known)

    def find_files(self) -> _ParquetFiles:
        """Find the parquet files of all splits: in the repository, or else in the hub's conversion.

        Raises:
            ShapeError: a split has no files, or the conversion stops within the splits.
        """
        commit, available = list_files(self.repo_id, self.commit or None)
        files = {split: self._own_files(split, available) for split in self.splits}
        if all(files.values()):
            return _ParquetFiles(commit, files, is_conversion=False)
        commit, available = list_files(self.repo_id, _PARQUET_REVISION)
        converted = {}
        for split in self.splits:
            converted[split] = self._converted_files(split, available)
        return _ParquetFiles(commit, converted, is_conversion=True)

    @property
    def _own_folder(self) -> str:
        """The folder of the repository's own parquet files."""
        is_named = self.parquet != "default"
        return self.config or (self.parquet if is_named else "data")

    def _own_files(self, split: str, available: Sequence[str]) -> list[str]:
        """Return the names of a split's parquet files in the repository itself."""
        if names := self.files.get(split):
            # A split without one of its files is not the split.
            if {*names} <= {*available}:
                return [*names]
            return []
        folder = re.escape(self._own_folder)
        numbered = re.compile(rf"{folder}/{re.escape(split)}-\d+-of-\d+\.parquet")
        return [name for name in available if numbered.fullmatch(name)]

    def _converted_files(self, split: str, available: Sequence[str]) -> list[str]:
        """Return the names of a split's files in the parquet conversion, or raise a `ShapeError`."""
        config = self.config or self.parquet
        files = [name for name in available if name.endswith(".parquet")]
        names = []
        for name in files:
            if name.startswith(f"{config}/{split}/"):
                names.append(name)
        if names:
            return names
        if any(name.startswith(f"{config}/{_PARTIAL}{split}/") for name in files):
            raise ShapeError(
                f"its parquet conversion has only {config}/{_PARTIAL}{split}: the hub"
                " converts the first 5 GB of a split, so rows are missing, and the"
                f" repository has no parquet files of its own; {USE_A_MIRROR}"
            )
        folders = sorted({"/".join(name.split("/")[:2]) for name in files})
        given = ", ".join(folders) or "nothing"
        raise ShapeError(
            f"its parquet conversion has no {config}/{split}, but {given}; {USE_A_MIRROR}"
        )


@dataclass(frozen=True)
class HubFile(SingleFile):
    """One file of a hub repository.

    Args:
        setting: name of an environment variable that can name another repository with the same file. It ends in `_REPO`.
        commit: commit of `repo`. An empty one stands for the latest. Of another repository, the latest commit is read.
        sha256: SHA-256 of the file. Without it, the file is checked only against the hub's digest.
    """

    repo: str
    name: str
    path: str
    kind: Kind = "dataset"
    setting: str | None = None
    commit: str = ""
    sha256: str = ""

    title = "{0.name} of hub {0.kind} {0.repo_id}"

    def __post_init__(self) -> None:
        if self.setting is not None:
            check_repository_setting(self.setting)

    @property
    def repo_id(self) -> str:
        """The repository to download it from: the one that `setting` names, or else `repo`."""
        return settings_in_use().repositories.get(self.setting or "") or self.repo

    @property
    def revision(self) -> str:
        """The commit of the repository to download it from, empty for the latest one."""
        if self.repo_id == self.repo:
            return self.commit
        return ""

    @property
    def remedy(self) -> str:
        """What to do if the server refuses access, in addition to setting a token."""
        return (
            f"set {self.setting} to a repository with a copy of it, or "
            if self.setting
            else ""
        ) + USE_A_MIRROR

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the file, and return its origin."""
        path, source = _download(
            self.repo_id, self.name, self.kind, self.revision, self.sha256
        )
        shutil.copyfile(path, part)
        return source

    def first_rows(self) -> Mapping[str, bytes]:
        """Return the first row of a file of JSON lines, or of an array of objects."""
        if self.kind != "dataset" or not self.name.endswith(JSON):
            return {}
        with _open_file(self.repo_id, self.name, self.revision) as file:
            return {self.path: first_json_content(file)}

    @property
    def pin(self) -> Pin:
        """The commit and the digest that are checked."""
        return Pin(
            self.repo_id,
            self.kind,
            self.revision,
            (self.name,),
            {self.name: self.sha256},
        )

    @property
    def stored_sha256(self) -> Mapping[str, str]:
        """The digest of the file under the data root, if it is known."""
        if self.sha256:
            return {self.path: self.sha256}
        return {}

    def find_differences(self) -> list[str]:
        """Compare the digest, if it is known."""
        commit = self.revision or list_files(self.repo_id, kind=self.kind)[0]
        return _compare_digests(
            self.repo_id, commit, {self.name: self.sha256}, self.kind
        )

    def origin(self, root: DataRoot) -> str:
        """Return the repository of the file, from the record next to it. Without a record, it is `repo`."""
        record = root / (self.path + SOURCE)
        if not record.is_file():
            return self.repo
        return str(json.loads(record.read_text(encoding="utf-8"))["repo"])


@dataclass(frozen=True)
class HubFiles(Source):
    """Several files of a hub data set repository.

    Args:
        names: the names of the files in the repository. No two of them differ only in their folders.
        path: the folder under the data root that receives them.
        setting: name of an environment variable that can name another repository with the same files. It ends in
            `_REPO`.
        commit: commit of `repo`. Of another repository, the latest commit is read.
    """

    repo: str
    names: tuple[str, ...]
    path: str
    setting: str
    commit: str

    title = "files of hub data set {0.repo_id}"

    def __post_init__(self) -> None:
        check_repository_setting(self.setting)

    @property
    def repo_id(self) -> str:
        """The repository to download them from."""
        return settings_in_use().repositories.get(self.setting) or self.repo

    @property
    def paths(self) -> list[str]:
        """The files under the data root."""
        return [f"{self.path}/{Path(name).name}" for name in self.names]

    @property
    def remedy(self) -> str:
        """What to do if the server refuses access, in addition to setting a token."""
        return (
            f"set {self.setting} to a repository with a copy of it, or {USE_A_MIRROR}"
        )

    @property
    def _revision(self) -> str:
        return self.commit if self.repo_id == self.repo else ""

    def fetch(self, folder: Path) -> None:
        """Download the files that the folder lacks, so that a fetch that failed goes on."""
        for name in self.names:
            target = folder / Path(name).name
            if target.is_file():
                continue
            with place_file(target) as (part, record):
                file, source = _download(self.repo_id, name, "dataset", self._revision)
                shutil.copyfile(file, part)
                record |= source

    @property
    def pin(self) -> Pin:
        """The commit. The digests are the hub's."""
        return Pin(self.repo_id, "dataset", self._revision, self.names)

    def find_differences(self) -> list[str]:
        """Ask whether the repository has the files."""
        _, available = list_files(self.repo_id, self._revision or None)
        lacking = sorted({*self.names} - {*available})
        if not lacking:
            return []
        return [f"{len(lacking)} of {len(self.names)} files are missing: {lacking[0]}"]


@dataclass(frozen=True)
class HubZip(SingleFile):
    """One member of a zip file in a hub data set repository.

    Args:
        member: path of the member. The zip file may also have it without the folder.
        commit: commit of the repository. An empty one stands for the latest.
        sha256: SHA-256 of the zip file, if it is known.
        other_members: other paths that the member has in some versions of the zip file.
    """

    repo: str
    name: str
    member: str
    path: str
    commit: str = ""
    sha256: str = ""
    other_members: tuple[str, ...] = ()

    title = "{0.name} of hub dataset {0.repo}"

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the zip file and unpack the member, and return the zip file's origin."""
        path, source = _download(
            self.repo, self.name, "dataset", self.commit, self.sha256
        )
        unzip(path, self.member, part, self._names)
        return source

    @property
    def _names(self) -> tuple[str, ...]:
        """The paths that the member can have: with its folder, and without it."""
        members = (self.member, *self.other_members)
        return (*members, *(member.rsplit("/", 1)[-1] for member in members))

    def first_rows(self) -> Mapping[str, bytes]:
        """Return the first row of the member, for which the end of the zip file and the member's start are read."""
        with _open_file(self.repo, self.name, self.commit) as file:
            return {self.path: first_in_zip(file, self._names)}

    @property
    def pin(self) -> Pin:
        """The commit and the digest that are checked."""
        return Pin(
            self.repo, "dataset", self.commit, (self.name,), {self.name: self.sha256}
        )

    def find_differences(self) -> list[str]:
        """Compare the digest of the zip file, if it is known."""
        commit = self.commit or list_files(self.repo)[0]
        return _compare_digests(self.repo, commit, {self.name: self.sha256})


@dataclass(frozen=True)
class HubRows(SingleFile):
    """The rows with a value in a column, from files of a data set repository, as JSON lines.

    Args:
        files: start of the names of the files (parquet or JSON lines).
        value: value of the column, or if it has lists their length.
        rows: number of rows in the release that the benchmark used, if it is known.
    """

    repo: str
    commit: str
    files: str
    path: str
    column: str
    value: int
    columns: tuple[str, ...]
    rows: int | None = None

    title = "{0.files}* of hub dataset {0.repo}, rows with {0.column} {0.value}"

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the files, and store the rows. The hub's cache keeps the files for other values."""
        digests: dict[str, str] = {}
        _, available = list_files(self.repo, self.commit)
        names = [name for name in available if name.startswith(self.files)]
        paths = []
        for name in names:
            paths.append(download(self.repo, name, self.commit, digests))
        rows = (row for path in paths for row in self._rows(path))
        packed = sum(path.stat().st_size for path in paths)
        _write_rows(
            part,
            rows,
            expected=self.rows,
            packed=packed,
            what="the data set",
        )
        return {"repo": self.repo, "commit": self.commit, "files": digests}

    def first_rows(self) -> Mapping[str, bytes]:
        """Return the first row of the first file, whatever its value."""
        available = list_files(self.repo, self.commit)[1]
        names = []
        for name in available:
            if name.startswith(self.files):
                names.append(name)
        if not names:
            raise ShapeError(
                f"the repository has no file {self.files}*, but {', '.join(available[:MOST_NAMED])}"
            )
        with _open_on_hub(self.repo, names[0], self.commit) as file:
            row = _first_row(file, names[0])
        if lacking := {*self.columns, self.column} - row.keys():
            raise ShapeError(
                f"{names[0]} has no column {min(lacking)!r}; its columns are {', '.join(row)}"
            )
        kept = {name: row[name] for name in self.columns}
        return {self.path: orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)}

    @property
    def pin(self) -> Pin:
        """The commit, and the start of the names."""
        return Pin(self.repo, "dataset", self.commit, (self.files,))

    def _rows(self, path: Path) -> Iterator[Mapping[str, Any]]:
        rows: Iterable[Mapping[str, Any]]
        if path.suffix == _PARQUET:
            # A row can hold millions of tokens.
            wanted = (self.column, self.value)
            rows = _read_parquet(path, (*self.columns, self.column), 4, wanted)
        else:
            rows = JsonLines(path, {})
        for row in rows:
            value = row.get(self.column)
            if (len(value) if isinstance(value, list) else value) == self.value:
                yield {name: row.get(name) for name in self.columns}


def label_names(folder: Path, column: str) -> list[str]:
    """Return the names of a label column's values, in the order of their numbers.

    Raises an `InputError` if `features.json` does not contain them.
    """
    path = folder / "features.json"
    try:
        features = json.loads(path.read_text(encoding="utf-8"))
        # In a mirror, the file may also have the format of `datasets`: `{"features": {"label": {"names": [...]}}}`.
        description = features.get("features", features)[column]
        names = description["names"] if isinstance(description, dict) else description
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{path} has no names for column {column!r}") from error
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError(
            f"{path}: the names of column {column!r} must be a list of strings"
        )
    return names


@dataclass(frozen=True)
class Repository:
    """What the hub says of a repository.

    Args:
        name: its present name.
        commit: the commit of the revision that was asked for.
        files: git's id of each file, by name; empty texts where the hub gives none.
    """

    name: str
    commit: str
    is_gated: bool
    files: Mapping[str, str]


_MOST_PAGES = 20
"""Pages of commits that are read."""


def read_repository(
    repo: str,
    revision: str | None,
    kind: Kind,
    *,
    with_ids: bool = False,
) -> Repository:
    """Ask the hub about a revision of a repository, by default the latest one.

    Args:
        with_ids: ask for git's ids of the files, too.

    Raises:
        InputError: the response is no description of a repository.
        OSError: the hub refuses the request, or cannot be reached.
    """
    at = f"/revision/{quote(revision, safe='')}" if revision else ""
    query = "?blobs=true" if with_ids else ""
    about = _ask_hub(f"{_hub_address()}/api/{kind}s/{repo}{at}{query}").content
    if not isinstance(about, dict):
        raise _wrong_form(repo)
    commit = about.get("sha")
    if not commit:
        raise InputError(
            f"the hub's response names no commit of {revision or repo}; check HF_ENDPOINT"
        )
    siblings = about.get("siblings") or []
    name = about.get("id") or repo
    if not (
        isinstance(commit, str) and isinstance(name, str) and isinstance(siblings, list)
    ):
        raise _wrong_form(repo)
    files: dict[str, str] = {}
    for sibling in siblings:
        if not isinstance(sibling, dict) or not isinstance(
            sibling.get("rfilename"), str
        ):
            raise _wrong_form(repo)
        files[sibling["rfilename"]] = str(sibling.get("blobId") or "")
    return Repository(
        name=name,
        commit=commit,
        is_gated=bool(about.get("gated")),
        files=files,
    )


def list_commits(repo: str, kind: Kind) -> list[str]:
    """Ask the hub for the commits of a repository, the newest first."""
    commits: list[str] = []
    url = f"{_hub_address()}/api/{kind}s/{repo}/commits/main"
    for _ in range(_MOST_PAGES):
        page = _ask_hub(url)
        if not isinstance(page.content, list):
            raise _wrong_form(repo)
        for commit in page.content:
            if not isinstance(commit, dict) or not isinstance(commit.get("id"), str):
                raise _wrong_form(repo)
            commits.append(commit["id"])
        url = page.next_url
        # The token is only for the hub.
        if not url.startswith(f"{_hub_address()}/"):
            break
    return commits


def _wrong_form(repo: str) -> InputError:
    return InputError(
        f"the hub's response about {repo} has an unexpected form; check HF_ENDPOINT"
    )


def _hub_address() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


def _ask_hub(url: str) -> Description:
    """Ask the hub for a description. huggingface_hub's own functions limit neither its size nor its time."""
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import OfflineModeIsEnabled

    if constants.HF_HUB_OFFLINE:
        raise OfflineModeIsEnabled("HF_HUB_OFFLINE is set")
    return fetch_description(url, get_token() or None)


def complete_commit(repo: str, digits: str, kind: Kind = "dataset") -> str:
    """Return the whole commit whose first digits are known.

    Raises:
        ShapeError: no commit of the repository has these digits, or several have them.
    """
    commits = list_commits(repo, kind)
    matches = []
    for commit in commits:
        if commit.startswith(digits):
            matches.append(commit)
    if len(matches) != 1:
        count = "several commits" if matches else "no commit"
        raise ShapeError(f"the repository has {count} {digits}…; {USE_A_MIRROR}")
    return matches[0]


def list_files(
    repo: str,
    revision: str | None = None,
    kind: Kind = "dataset",
) -> tuple[str, list[str]]:
    """Ask the hub for the commit of a revision, by default the latest one, and for the names of its files, sorted.

    Raises an `InputError` if the response names no commit.
    """
    if revision and _FIRST_DIGITS.fullmatch(revision):
        revision = complete_commit(repo, revision, kind)
    repository = read_repository(repo, revision, kind)
    return repository.commit, sorted(repository.files)


class FileDescription(NamedTuple):
    """What the hub says of a file: its size in bytes if it is known, and its digest."""

    size: int | None
    digest: str


def describe_file(
    repo: str,
    name: str,
    commit: str,
    kind: Kind = "dataset",
) -> FileDescription:
    """Ask the hub for the size and the digest of a file at a commit.

    Raises:
        InputError: the size is negative.
        Exception: an error of huggingface_hub.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(repo, name, repo_type=kind, revision=commit)
    metadata = run_within(ASK_SECONDS, partial(get_hf_file_metadata, url))
    if metadata.size is not None and metadata.size < 0:
        raise InputError(
            f"the hub says that {name} has {metadata.size} bytes; check HF_ENDPOINT"
        )
    return FileDescription(metadata.size, metadata.etag or "")


class RangedStream(ResumingStream):
    """A file on a server of which parts are read, each with a request for a range."""

    def seekable(self) -> bool:
        """Return True: reading can go on at any position."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next byte, and return it. Another position ends the request."""
        starts = {
            io.SEEK_SET: 0,
            io.SEEK_CUR: self.position,
            io.SEEK_END: self.size or 0,
        }
        position = starts[whence] + offset
        if position != self.position:
            self._drop()
            self.position = position
        return position


def _digest_on_hub(
    repo: str,
    name: str,
    commit: str,
    kind: Kind,
) -> str:
    """Read a file at a commit, and return its SHA-256."""
    with _open_on_hub(repo, name, commit, kind) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()


@contextmanager
def _open_on_hub(
    repo: str,
    name: str,
    commit: str,
    kind: Kind = "dataset",
) -> Iterator[BinaryIO]:
    """Open a file at a commit for reading in parts."""
    from huggingface_hub import get_token, hf_hub_url

    url = hf_hub_url(repo, name, repo_type=kind, revision=commit)
    size = describe_file(repo, name, commit, kind).size
    # The address is the hub's own. The one to which it redirects must not get the token.
    stream = RangedStream(url, size, get_token() or None)
    with io.BufferedReader(stream, 1 << 16) as file:
        yield cast(BinaryIO, file)


def _first_row(
    file: BinaryIO,
    name: str,
    columns: tuple[str, ...] | None = None,
) -> Mapping[str, Any]:
    """Return the first row of a file. Of a parquet file, the end and the first pages of the columns are read."""
    if not name.endswith(_PARQUET):
        return read_first_row(file)[0]

    from pyarrow import parquet

    batches = parquet.ParquetFile(file).iter_batches(
        batch_size=1,
        row_groups=[0],
        columns=columns and list(columns),
    )
    row: Mapping[str, Any] = next(batches).to_pylist()[0]
    return row


def _count_parquet_rows(file: BinaryIO) -> int:
    """Return the number of rows of a parquet file. Only its end is read."""
    from pyarrow import parquet

    rows: int = parquet.read_metadata(file).num_rows
    return rows


def _compare_digests(
    repo: str,
    commit: str,
    digests: Mapping[str, str],
    kind: Kind = "dataset",
) -> list[str]:
    """Return a sentence for each file whose SHA-256 on the hub is not the known one. Unknown digests are empty."""
    differences = []
    for name, expected in digests.items():
        given = describe_file(repo, name, commit, kind).digest
        if not expected:
            continue
        if len(given) != len(expected):
            # For small files the hub announces git's blob id, of 40 digits. Their content is read.
            given = _digest_on_hub(repo, name, commit, kind)
        if given != expected:
            differences.append(f"{name} has SHA-256 {given}, expected {expected}")
    return differences


@contextmanager
def _open_file(repo: str, name: str, commit: str) -> Iterator[BinaryIO]:
    """Open a file of a data set at a commit, by default the latest one, for reading in parts."""
    available = [name]
    if not commit:
        commit, available = list_files(repo)
    if name not in available:
        raise ShapeError(
            f"the repository has no file {name}, but {', '.join(available[:MOST_NAMED])}"
        )
    with _open_on_hub(repo, name, commit) as file:
        yield file


def _download(
    repo: str,
    name: str,
    kind: Kind,
    commit: str = "",
    sha256: str = "",
) -> tuple[Path, dict[str, object]]:
    """Download a file at a commit, by default the latest one. Return its path and the record of its source."""
    commit = commit or list_files(repo, kind=kind)[0]
    digests: dict[str, str] = {}
    path = download(repo, name, commit, digests, kind, sha256)
    return path, {"repo": repo, "commit": commit, "files": digests}


def download(
    repo: str,
    name: str,
    commit: str,
    digests: dict[str, str],
    kind: Kind = "dataset",
    sha256: str = "",
) -> Path:
    """Download a file at a commit into the hub's cache, and check it.

    Raises:
        InputError: the hub sends more than it announced, the digest differs, or the disk of the hub's cache is too full.
    """
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.constants import HF_HUB_CACHE

    described = describe_file(repo, name, commit, kind)
    expected = sha256 or described.digest
    # The function returns a path, None, or a marker for a file that does not exist. Only a path is a string.
    if not isinstance(
        try_to_load_from_cache(repo, name, repo_type=kind, revision=commit), str
    ):
        Path(HF_HUB_CACHE).mkdir(parents=True, exist_ok=True)
        check_space(Path(HF_HUB_CACHE), described.size or 0)
    limit: dict[str, Any] = {}
    # Versions before 1.2 have no such parameter, so their downloads end only when the hub's response does.
    if "tqdm_class" in signature(hf_hub_download).parameters:
        limit["tqdm_class"] = _limit_download(name, described.size)
    path = Path(hf_hub_download(repo, name, repo_type=kind, revision=commit, **limit))
    digests[name] = sha256_of(path)
    # For small files the hub announces git's blob id (40 digits) instead of the SHA-256.
    if len(expected) == 64 and expected != digests[name]:
        # The link and its target are deleted, because otherwise the hub's cache would return the bad file again.
        for file in (path.resolve(), path):
            file.unlink(missing_ok=True)
        raise InputError(
            f"{name} has SHA-256 {digests[name]}, expected {expected}; the file was deleted"
        )
    return path


def _limit_download(name: str, size: int | None) -> type[Any]:
    """Make a progress bar for huggingface_hub that ends a download which is larger than announced.

    huggingface_hub compares the size with the announced one only after the response has ended.

    Args:
        size: the announced size in bytes, if there is one. Without one, the disk keeps some free space.
    """
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class LimitedProgress(tqdm):
        """A progress bar that raises an `InputError` at the limit."""

        received = 0
        """Bytes so far. A bar that is not shown does not count them."""

        def update(self, count: float | None = 1) -> bool | None:
            """Count received bytes; huggingface_hub calls this before it writes them."""
            self.received += int(count or 0)
            if size is None:
                check_space(Path(HF_HUB_CACHE))
            elif self.received > size + _MORE_THAN_ANNOUNCED:
                raise InputError(
                    f"the hub announced {size:,} bytes for {name} and sends more; check HF_ENDPOINT, or"
                    f" {USE_A_MIRROR}"
                )
            shown: bool | None = super().update(count)
            return shown

    return LimitedProgress


def _write_rows(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    expected: int | None,
    packed: int,
    what: str,
) -> None:
    """Write rows as JSON lines, and check their number.

    Args:
        expected: the number of rows, or None for any but 0.
        packed: bytes of the files from which the rows come. Parquet can repeat a text a million times in a few bytes.
    """
    count = 0
    with path.open("wb") as out:
        for row in rows:
            try:
                out.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            except TypeError as error:
                raise InputError(
                    f"{what} cannot be read: JSON cannot express a value ({error})"
                ) from error
            count += 1
            check_ratio(what, out.tell(), packed)
            if count > (expected or count):
                break
    if not count or count != (expected or count):
        has_more = expected is not None and count > expected
        counted = f"more than {expected} rows" if has_more else f"{count} rows"
        raise InputError(
            f"{what} has {counted}, expected {expected or 'some'}: it is not the"
            f" release that the benchmark used; {USE_A_MIRROR}"
        )


def _read_files(
    paths: Iterable[Path],
    columns: Sequence[str] | None,
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of files of a split: parquet files, JSON lines, or arrays of rows in JSON."""
    for path in paths:
        if path.suffix == _PARQUET:
            # A row can hold a whole book, so few rows are in memory at a time.
            yield from _read_parquet(path, columns, 64)
            continue
        rows = JsonLines if path.suffix == _JSON_LINES else JsonArray
        yield from rows(path, {})


def _read_parquet(
    path: Path,
    columns: Sequence[str] | None,
    at_once: int,
    wanted: tuple[str, int] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a parquet file.

    `datasets` would first write a copy of the file in Arrow format to its own cache. Here the rows are needed once, in
    file order.

    Args:
        columns: the columns that are read, by default all.
        at_once: number of rows in memory.
        wanted: a column and a value. Row groups that cannot have the value are left out.
    """
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        groups = [*range(file.num_row_groups)]
        if wanted:
            column, value = wanted
            index = file.schema_arrow.names.index(column)
            ranges = {}
            for n in groups:
                ranges[n] = file.metadata.row_group(n).column(index).statistics
            groups = []
            for n, range_ in ranges.items():
                if _can_contain(range_, value):
                    groups.append(n)
        for batch in file.iter_batches(
            batch_size=at_once,
            row_groups=groups,
            columns=columns and list(columns),
        ):
            yield from batch.to_pylist()
    except Exception as error:  # pyarrow raises OSError, ValueError and its own errors
        raise InputError(
            f"{path.resolve()} cannot be read ({type(error).__name__}); delete it"
        ) from error


def _can_contain(statistics: Any, value: int) -> bool:
    """Whether a row group may have a value in a column, as far as the statistics of the column tell."""
    if not statistics or not statistics.has_min_max:
        return True
    return bool(statistics.min <= value <= statistics.max)


def _features(path: Path | IO[bytes]) -> dict[str, list[str]]:
    """Return the label names of each label column, from the metadata that `datasets` writes into a parquet schema."""
    from pyarrow import parquet

    metadata = parquet.read_schema(path).metadata or {}
    try:
        description = orjson.loads(
            metadata.get(b"huggingface", b'{"info": {"features": {}}}')
        )
        names = {}
        for name, column in description["info"]["features"].items():
            # `datasets` describes a column of lists by a list. It has no label names.
            if isinstance(column, dict) and column.get("_type") == "ClassLabel":
                names[name] = column["names"]
        return names
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path} has malformed label names; {USE_A_MIRROR}") from error
