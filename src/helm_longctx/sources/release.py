"""Files of a benchmark's release that is one archive: it is streamed once, and only what was asked for is kept.

HELMET's archive is 11 GB to download and 34 GB unpacked, and a run needs a few files of it; it is never stored whole.
Nothing comes to its final place before the whole archive was read and had the size and SHA-256 that the hub announces.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from helm_longctx.errors import InputError
from helm_longctx.locks import locked
from helm_longctx.sources import hub
from helm_longctx.sources.disk import check_space
from helm_longctx.sources.download import ResumingStream, retrying
from helm_longctx.sources.root import DataRoot
from helm_longctx.sources.unpack import BLOCK, Record, normal, unpack

MOST_PINNED = 16 << 20
"""Bytes of a pinned file, at most: a server that never ends would fill the disk."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Release:
    """A release on the hub that is one archive.

    Args:
        repo: hub data set repository.
        setting: environment variable that may name a repository `org/name[@revision]` with the release unpacked, at
            its top or under `prefix`.
        folder: folder under the data root that holds the same tree.
        archive: the archive's name in the repository, a gzip-compressed tar file.
        prefix: what the names of its members start with.
    """

    repo: str
    setting: str
    folder: str
    archive: str = "data.tar.gz"
    prefix: str = "data/"

    def member(self, path: str) -> str:
        """The archive's name of a path under the data root.

        Raises:
            InputError: the path is not a plain one in the folder.
        """
        name = path.removeprefix(f"{self.folder}/")
        if name in ("", path) or normal(name) != name:
            raise InputError(f"{path!r} is no file of the release {self.repo}; its files are in {self.folder}/")
        return self.prefix + name


@dataclass(frozen=True)
class ReleaseFile:
    """A file of a release.

    Args:
        release: the release.
        path: under the data root.
    """

    release: Release
    path: str

    @property
    def paths(self) -> list[str]:
        """Its one path under the data root."""
        return [self.path]


@dataclass(frozen=True)
class PinnedFile:
    """A small file of a fixed commit.

    Args:
        path: under the data root.
        url: where to download it.
        sha256: of its content.
    """

    path: str
    url: str
    sha256: str

    @property
    def paths(self) -> list[str]:
        """Its one path under the data root."""
        return [self.path]


def ensure(release: Release, paths: Sequence[str], root: DataRoot, command: str) -> None:
    """Have files of a release under the root; into a cache those that are absent are downloaded.

    Args:
        paths: under the data root, e.g. `helmet/kilt/x.jsonl`.
        command: what a user types to get them, for the error.

    Raises:
        InputError: they are missing and may not be downloaded, or the download fails or is not what it should be.
    """
    absent = _absent(paths, root, command)
    if not absent:
        return
    wanted = {release.member(path): path for path in absent}
    unpacked = os.environ.get(release.setting)
    folder = root / release.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder of this process's own, so that no reader and no other fetch sees a part.
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
            check_space(folder)
            fetched = (
                _fetch_single(release, wanted, unpacked, Path(name))
                if unpacked
                else _fetch_archive(release, wanted, Path(name))
            )
            _place(fetched, Path(name), root, folder)
    except Exception as error:
        # Anything: which HTTP library's errors come through depends on huggingface_hub's version.
        source = f"the repository that {release.setting} names" if unpacked else f"release {release.repo}"
        raise InputError(f"{source}: {hub.explain_failure(error, folder)}; then run: {command}") from error


def ensure_pinned(files: Sequence[PinnedFile], root: DataRoot, command: str) -> None:
    """Have small files of fixed commits under the root; into a cache those that are absent are downloaded.

    Raises:
        InputError: they are missing and may not be downloaded, or the download fails or has another content.
    """
    absent = _absent([file.path for file in files], root, command)
    for file in {file.path: file for file in files if file.path in absent}.values():
        target = root / file.path
        try:
            _fetch_pinned(file, target)
        except Exception as error:
            raise InputError(f"{target}: {hub.explain_failure(error, target.parent)}; then run: {command}") from error


def _absent(paths: Sequence[str], root: DataRoot, command: str) -> list[str]:
    absent = [path for path in dict.fromkeys(paths) if not root.has(path)]
    if absent and root.mirror:
        raise root.missing(absent, command)
    return absent


def _fetch_pinned(file: PinnedFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    check_space(target.parent)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as name:
        part = Path(name) / "0"
        with ResumingStream(file.url) as stream:
            size = part.write_bytes(io.BufferedReader(stream).read(MOST_PINNED))
            found = stream.digest.hexdigest()
        if size == MOST_PINNED:
            raise InputError(f"what was downloaded has more than {MOST_PINNED} bytes; {hub.USE_A_MIRROR}")
        if found != file.sha256:
            raise InputError(f"what was downloaded has SHA-256 {found}, expected {file.sha256}; {hub.USE_A_MIRROR}")
        os.replace(part, target)


def _fetch_archive(release: Release, wanted: Mapping[str, str], part: Path) -> dict[str, Record]:
    """Stream the archive, and lay the wanted files under `part` as they shall lie under the root; their records."""
    from huggingface_hub import get_token
    from tqdm import tqdm

    commit, url, size, expected = retrying()(_locate, release)
    _log.warning(
        "fetching %s of %s: %.1f GB are downloaded; of them only this is kept: %s",
        *(release.archive, release.repo, size / 1e9, ", ".join(wanted)),
    )
    with (
        ResumingStream(url, size, get_token()) as stream,
        # disable=None: no bar where standard error is no terminal
        tqdm(total=size, unit="B", unit_scale=True, desc=release.archive, disable=None) as bar,
    ):
        stream.progress = bar.update
        buffered = io.BufferedReader(stream, 1 << 16)
        records = unpack(buffered, release.archive, wanted, part)
        while buffered.read(BLOCK):  # what follows the last member, for the digest
            pass
        found = stream.digest.hexdigest()
    if found != expected:
        raise InputError(f"{release.archive} has SHA-256 {found}, expected {expected}; nothing of it is kept")
    if lacking := [member for member, path in wanted.items() if path not in records]:
        raise InputError(
            f"{release.archive} has no {', '.join(lacking)}: not the benchmark's release; {hub.USE_A_MIRROR}"
        )
    source = {"repo": release.repo, "commit": commit, "archive_sha256": expected}
    return {path: {**record, **source} for path, record in records.items()}


def _locate(release: Release) -> tuple[str, str, int, str]:
    """Commit, URL, size and SHA-256 of the archive."""
    from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url

    commit = HfApi().dataset_info(release.repo, revision="main", timeout=hub.TIMEOUT).sha
    if not commit:
        raise InputError("the hub names no commit of main; check HF_ENDPOINT")
    url = hf_hub_url(release.repo, release.archive, repo_type="dataset", revision=commit)
    metadata = get_hf_file_metadata(url)
    if not metadata.size or not re.fullmatch(r"[0-9a-f]{64}", metadata.etag or ""):
        raise InputError(f"the hub gives no size and SHA-256 of {release.archive}; check HF_ENDPOINT")
    return commit, url, metadata.size, str(metadata.etag)


def _fetch_single(release: Release, wanted: Mapping[str, str], setting: str, part: Path) -> dict[str, Record]:
    """Single files from a repository that has the release unpacked; as `_fetch_archive`."""
    from huggingface_hub import HfApi

    match = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", setting)
    if not match:
        raise InputError("it must be a hub data set repository, org/name or org/name@revision; set it so")
    repo, revision = match[1], match[2] or "main"
    info = retrying()(HfApi().dataset_info, repo, revision=revision, timeout=hub.TIMEOUT)
    if not info.sha:
        raise InputError(f"the hub names no commit of {revision}; check HF_ENDPOINT")
    available = {file.rfilename for file in info.siblings or []}
    names = {member: member.removeprefix(release.prefix) for member in wanted}
    names = {member: name if name in available else member for member, name in names.items()}
    if lacking := [names[member] for member in wanted if names[member] not in available]:
        raise InputError(f"it has no {', '.join(lacking)}, with or without {release.prefix}; upload them to it")
    _log.warning("fetching %d files of %s: %s", len(wanted), repo, ", ".join(names.values()))
    records: dict[str, Record] = {}
    for member, path in wanted.items():
        digests: dict[str, str] = {}
        cached = hub.download(repo, names[member], info.sha, digests).resolve()
        size = cached.stat().st_size
        _link(cached, part / path)
        records[path] = {"size": size, "sha256": digests[names[member]], "repo": repo, "commit": info.sha}
    return records


def _link(cached: Path, target: Path) -> None:
    """The cache's file under another name; a copy where the disk is another or has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(cached, target)
    except OSError:
        check_space(target.parent, cached.stat().st_size)
        shutil.copyfile(cached, target)


def _place(records: Mapping[str, Record], part: Path, root: DataRoot, folder: Path) -> None:
    """Record what was fetched, then move it to its places: a record without its file does no harm."""
    for path in records:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".release.lock", "a record of another fetch may be lost", hub.TIMEOUT):
        kept = {**_records(folder / "release.json"), **records}
        text = orjson.dumps(kept, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        (part / "release.json").write_bytes(text)
        os.replace(part / "release.json", folder / "release.json")
        for path in records:
            os.replace(part / path, root / path)


def _records(path: Path) -> Record:
    """What earlier fetches recorded; a damaged file must not cost a download."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        _log.warning("%s is not a JSON object and is written anew", path)
        return {}
    return found
