"""Gets files of a benchmark's release (one archive on the hub), and small pinned files.

HELMET's archive is 11 GB to download and 34 GB unpacked, and a run needs a few files of it. So the archive is streamed
once, only the requested files are written, and the archive is never stored. Files are moved into the data root only
after the whole archive was read and had the size and the SHA-256 that the hub announces.
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
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

from helm_longctx.data import hub
from helm_longctx.data.download import (
    Pin,
    ResumingStream,
    SingleFile,
    check_space,
    explain_failure,
    retry,
)
from helm_longctx.data.root import USE_A_MIRROR, DataRoot
from helm_longctx.data.unpack import BLOCK, Provenance, first_in_tar, normalize, unpack
from helm_longctx.data.web import pin_address
from helm_longctx.errors import InputError
from helm_longctx.locks import hold_lock
from helm_longctx.run_settings import check_repository_setting, settings_in_use

_MOST_PINNED = 16 << 20
"""Largest size of a pinned file in bytes. Without a limit, a server that never stops sending would fill the disk."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Release:
    """A release that is one archive on the hub.

    Args:
        setting: environment variable that can name a repository, `org/name[@revision]`, that holds the release
            unpacked. It ends in `_REPO`. The files are at its top or under `prefix`.
        archive: name of the archive in the repository, a gzip-compressed tar file.
        commit: commit of the repository, empty for the latest one.
        sha256: SHA-256 of the archive, empty if it is not known. It is then checked only against the hub's digest.
    """

    repo: str
    setting: str
    folder: str
    archive: str = "data.tar.gz"
    prefix: str = "data/"
    commit: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        check_repository_setting(self.setting)

    def member(self, path: str) -> str:
        """Return the archive's name of a file under the data root, or raise an `InputError` if it is not in it."""
        name = path.removeprefix(f"{self.folder}/")
        if name in ("", path) or normalize(name) != name:
            raise InputError(
                f"{path!r} is not a file of the release {self.repo}; its files are in"
                f" {self.folder}/"
            )
        return self.prefix + name


@dataclass(frozen=True)
class ReleaseFile(SingleFile):
    """A file of a release."""

    release: Release
    path: str

    def ensure(self, root: DataRoot, command: str) -> None:
        """Download the file; `ensure_release_files` gets several at once."""
        ensure_release_files(self.release, [self.path], root, command)

    @property
    def pin(self) -> Pin:
        """The archive, its commit and its digest."""
        release = self.release
        digests = {release.archive: release.sha256}
        return Pin(release.repo, "dataset", release.commit, (release.archive,), digests)

    def first_rows(self) -> Mapping[str, bytes]:
        """Return the first row of the file if it is JSON and stands in the first part of the archive."""
        content = _first_members(self.release).get(self.release.member(self.path))
        return {self.path: content} if content else {}


@dataclass(frozen=True)
class PinnedFile(SingleFile):
    """A small file with a known SHA-256."""

    path: str
    url: str
    sha256: str

    title = "{0.path}"
    log_level = logging.DEBUG

    @classmethod
    def of_repository(
        cls,
        folder: str,
        path: str,
        sha256: str,
        *,
        target: str,
    ) -> PinnedFile:
        """Return a file of a GitHub repository at a commit.

        Args:
            folder: `OWNER/NAME/COMMIT`, and a folder in the repository if the file is in one.
            target: the folder under the data root in which the file gets the same path.
        """
        return cls(
            f"{target}/{path}",
            f"https://raw.githubusercontent.com/{folder}/{path}",
            sha256,
        )

    @property
    def pin(self) -> Pin | None:
        """The commit in the address, and the digest."""
        return pin_address(self.url, self.sha256)

    @property
    def stored_sha256(self) -> Mapping[str, str]:
        """The digest of the file under the data root."""
        return {self.path: self.sha256}

    def find_differences(self) -> list[str]:
        """Download the small file, and compare its digest."""
        with ResumingStream(self.url) as stream:
            io.BufferedReader(stream).read(_MOST_PINNED)
            sha256 = stream.digest.hexdigest()
        if sha256 == self.sha256:
            return []
        return [f"SHA-256 {sha256}, expected {self.sha256}"]

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the file. Its digest is in the code, so it has no record."""
        check_space(part.parent)
        with ResumingStream(self.url) as stream:
            size = part.write_bytes(io.BufferedReader(stream).read(_MOST_PINNED))
            sha256 = stream.digest.hexdigest()
        # `read` stops at the limit, so a file of exactly this size may have been longer.
        if size == _MOST_PINNED:
            raise InputError(
                f"the downloaded file is larger than {_MOST_PINNED} bytes; {USE_A_MIRROR}"
            )
        if sha256 != self.sha256:
            raise InputError(
                f"the downloaded file has SHA-256 {sha256}, expected {self.sha256}; {USE_A_MIRROR}"
            )
        return {}


def ensure_release_files(
    release: Release,
    paths: Sequence[str],
    root: DataRoot,
    command: str,
) -> None:
    """Download those files of a release that the data root lacks, or raise an `InputError`."""
    absent = root.find_absent(paths, command)
    if not absent:
        return
    wanted = {release.member(path): path for path in absent}
    unpacked = settings_in_use().repositories.get(release.setting)
    folder = root / release.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Only this process uses the temporary folder, so no reader and no other process sees a partial file.
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
            check_space(folder)
            if unpacked:
                fetched = _fetch_single(release, wanted, unpacked, Path(name))
            else:
                fetched = _fetch_archive(release, wanted, Path(name))
            _move_files(fetched, Path(name), root, folder)
    except Exception as error:
        # huggingface_hub raises the errors of different HTTP libraries, depending on its version.
        reason = explain_failure(error, folder)
        source = f"release {release.repo}"
        if unpacked:
            source = f"the repository that {release.setting} names"
        raise InputError(f"{source}: {reason}; then run: {command}") from error


@cache
def _first_members(release: Release) -> Mapping[str, bytes]:
    """Return the JSON files in the first part of the archive with their first rows, by normalized name."""
    from huggingface_hub import get_token

    _, url, size, _ = _locate(release)
    with io.BufferedReader(ResumingStream(url, size, get_token())) as file:
        contents = {}
        for name, content in first_in_tar(file).items():
            contents[normalize(name) or name] = content
        return contents


def _fetch_archive(
    release: Release,
    wanted: Mapping[str, str],
    part: Path,
) -> dict[str, Provenance]:
    """Stream the archive, write the wanted files under `part`, and return the provenance of each by its path."""
    from huggingface_hub import get_token
    from tqdm import tqdm

    commit, url, size, expected = retry(_locate, release)
    _log.warning(
        "fetching %s of %s: %.1f GB are downloaded; only these files are kept: %s",
        release.archive,
        release.repo,
        size / 1e9,
        ", ".join(wanted),
    )
    with (
        ResumingStream(url, size, get_token()) as stream,
        # disable=None: no progress bar if standard error is not a terminal
        tqdm(
            total=size,
            unit="B",
            unit_scale=True,
            desc=release.archive,
            disable=None,
        ) as bar,
    ):
        stream.progress = bar.update
        buffered = io.BufferedReader(stream, 1 << 16)
        records = unpack(buffered, release.archive, wanted, part)
        while buffered.read(
            BLOCK
        ):  # the digest also covers the bytes after the last member
            pass
        sha256 = stream.digest.hexdigest()
    if sha256 != expected:
        raise InputError(
            f"{release.archive} has SHA-256 {sha256}, expected {expected}; no file of it was kept"
        )
    if lacking := [member for member, path in wanted.items() if path not in records]:
        raise InputError(
            f"{release.archive} has no {', '.join(lacking)}: it is not the release that"
            f" the benchmark used; {USE_A_MIRROR}"
        )
    source = {"repo": release.repo, "commit": commit, "archive_sha256": expected}
    return {path: {**record, **source} for path, record in records.items()}


def _locate(release: Release) -> tuple[str, str, int, str]:
    from huggingface_hub import hf_hub_url

    commit, _ = hub.list_files(release.repo, release.commit or "main")
    url = hf_hub_url(
        release.repo, release.archive, repo_type="dataset", revision=commit
    )
    described = hub.describe_file(release.repo, release.archive, commit)
    if not described.size or not re.fullmatch(r"[0-9a-f]{64}", described.digest):
        raise InputError(
            f"the hub's response has no size and SHA-256 of {release.archive}; check HF_ENDPOINT"
        )
    expected = described.digest
    if release.sha256 and expected != release.sha256:
        raise InputError(
            f"the hub has {release.archive} with SHA-256 {expected}, expected"
            f" {release.sha256}; {USE_A_MIRROR}"
        )
    return commit, url, described.size, expected


def _fetch_single(
    release: Release,
    wanted: Mapping[str, str],
    setting: str,
    part: Path,
) -> dict[str, Provenance]:
    """Download single files from a repository that holds the release unpacked. Return what `_fetch_archive` returns."""
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", setting)
    if not match:
        raise InputError(
            "the variable must name a hub data set repository as org/name or org/name@revision"
        )
    repo = match[1]
    revision = match[2] or "main"
    commit, available = retry(hub.list_files, repo, revision)
    names = {member: member.removeprefix(release.prefix) for member in wanted}
    # The name without the prefix is used if the repository has it, otherwise the name with the prefix.
    available_names = {}
    for member, name in names.items():
        available_names[member] = name if name in available else member
    names = available_names
    if lacking := [
        names[member] for member in wanted if names[member] not in available
    ]:
        raise InputError(
            f"it has no {', '.join(lacking)}, with or without {release.prefix}; upload them to it"
        )
    _log.warning(
        "fetching %d files of %s: %s", len(wanted), repo, ", ".join(names.values())
    )
    records: dict[str, Provenance] = {}
    for member, path in wanted.items():
        digests: dict[str, str] = {}
        # The cache's path is a symbolic link to a blob, and a hard link must point to the blob itself.
        cached = hub.download(repo, names[member], commit, digests).resolve()
        size = cached.stat().st_size
        (part / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(cached, part / path)
        except OSError:  # another disk, or one without links
            check_space((part / path).parent, size)
            shutil.copyfile(cached, part / path)
        records[path] = {
            "size": size,
            "sha256": digests[names[member]],
            "repo": repo,
            "commit": commit,
        }
    return records


def _move_files(
    records: Mapping[str, Provenance],
    part: Path,
    root: DataRoot,
    folder: Path,
) -> None:
    """Record the provenance of files in `release.json`, and then move them: a file without its record would do harm."""
    for path in records:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(
        folder / ".release.lock",
        "a record of another fetch may be lost",
        hub.LOCK_TIMEOUT,
    ):
        kept = None
        old = folder / "release.json"
        # A damaged file is ignored, so that no download is lost. Bytes that are not UTF-8 raise a ValueError, too.
        with suppress(FileNotFoundError, ValueError):
            kept = json.loads(old.read_bytes())
        if not isinstance(kept, dict) and old.exists():
            _log.warning("%s is not a JSON object and is replaced", old)
        kept = kept if isinstance(kept, dict) else {}
        for path, record in records.items():
            earlier = kept.get(path, record)
            if isinstance(earlier, dict) and earlier.get("sha256") != record["sha256"]:
                _log.warning(
                    "%s: the file changed since it was fetched before; scores do not"
                    " compare with scores on the old one",
                    path,
                )
        kept = {**kept, **records}
        text = orjson.dumps(
            kept,
            option=orjson.OPT_INDENT_2
            | orjson.OPT_SORT_KEYS
            | orjson.OPT_APPEND_NEWLINE,
        )
        (part / "release.json").write_bytes(text)
        os.replace(part / "release.json", folder / "release.json")
        for path in records:
            os.replace(part / path, root / path)
