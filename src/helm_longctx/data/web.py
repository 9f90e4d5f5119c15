"""Downloads files without a published SHA-256: single ones from web servers and public buckets, and GitHub folders.

GitHub may change the bytes of its archives, so a checksum of the archive is of no use. The content is checked instead:
git's tree id of the folder covers the name and the content of every file in it.
"""

import base64
import gzip
import hashlib
import io
import logging
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from helm_longctx.data.download import (
    Pin,
    ResumingStream,
    SingleFile,
    Source,
    check_space,
    copy_stream,
    fetch_description,
)
from helm_longctx.data.jsonl import JSON, MOST, first_json_content
from helm_longctx.data.root import USE_A_MIRROR, DataRoot
from helm_longctx.data.unpack import BLOCK, InflatingStream, normalize, open_members
from helm_longctx.errors import InputError

_API = "https://storage.googleapis.com/storage/v1/b"
_ARCHIVES = "https://codeload.github.com"
"""Server of repository archives: `<ARCHIVES>/<owner>/<name>/tar.gz/<commit>`."""

_GITHUB = re.compile(
    r"https://(?:raw|media)\.githubusercontent\.com/(?:media/)?(?P<repo>[^/]+/[^/]+)/(?P<revision>[^/]+)/(?P<name>.+)"
)
_HUB = re.compile(
    r"https://huggingface\.co/datasets/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)"
)
_COMMIT = re.compile("[0-9a-f]{40}")

_log = logging.getLogger(__name__)


def pin_address(url: str, digest: str) -> Pin | None:
    """Return what an address pins, or None if it is not in a repository on GitHub or on the hub.

    Args:
        digest: the digest of the file, if it is known.
    """
    on_github = _GITHUB.match(url)
    match = on_github or _HUB.match(url)
    if match is None:
        return None
    repo, revision, name = match.groups()
    if on_github and not _COMMIT.fullmatch(revision):
        revision = ""
    return Pin(
        repo=repo,
        kind="github" if on_github else "dataset",
        commit=revision,
        files=(name,),
        digests={name: digest},
    )


@dataclass(frozen=True)
class WebFile(SingleFile):
    """A file on a web server.

    Args:
        blob: git's id of the content (`git hash-object FILE`). Without it, the content is not checked, but users can
            compare the records of the files on two machines.
    """

    url: str
    path: str
    blob: str = ""

    title = "{0.url}"

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the file, and return its address."""
        if not self.blob:
            _log.warning(
                "the content of %s cannot be checked, because no checksum was published",
                self.url,
            )
        check_space(part.parent)
        with ResumingStream(self.url) as stream, part.open("wb") as out:
            copy_stream(stream, out, part.parent)
        if self.blob:
            blob = object_id("blob", part.read_bytes())
            if blob != self.blob:
                raise InputError(
                    f"the downloaded file has the git id {blob}, expected {self.blob};"
                    f" {USE_A_MIRROR}"
                )
        return {"url": self.url}

    def is_pinned_content(self, root: DataRoot) -> bool:
        """Whether the file under the data root has the known git id."""
        path = root / self.path
        return path.is_file() and object_id("blob", path.read_bytes()) == self.blob

    @property
    def pin(self) -> Pin | None:
        """The commit in the address, and the git id of the content."""
        return pin_address(self.url, self.blob)

    def find_differences(self) -> list[str]:
        """Download a file with a known git id and compare it; of others, ask whether they exist."""
        with ResumingStream(self.url) as stream:
            file = io.BufferedReader(stream)
            if not self.blob:
                file.peek(1)
                return []
            content = file.read(MOST)
            if len(content) == MOST:
                return [f"it has more than {MOST >> 20} MiB"]
            blob = object_id("blob", content)
        if blob == self.blob:
            return []
        return [f"the git id is {blob}, expected {self.blob}"]

    def first_rows(self) -> Mapping[str, bytes]:
        """Return the first row of a file of JSON lines, or of an array of objects."""
        if not self.path.endswith(JSON):
            return {}
        with ResumingStream(self.url) as stream:
            return {self.path: first_json_content(io.BufferedReader(stream))}


@dataclass(frozen=True)
class BucketFile(SingleFile):
    """A file in a public bucket. It is checked against the announced size and MD5."""

    bucket: str
    name: str
    path: str

    title = "{0.name} of bucket {0.bucket}"

    @property
    def _url(self) -> str:
        return f"{_API}/{self.bucket}/o/{quote(self.name, safe='')}"

    def _describe(self) -> dict[str, Any]:
        """Ask the bucket for the size, the generation and the MD5 of the file."""
        about = fetch_description(self._url).content
        size = about.get("size") if isinstance(about, dict) else None
        if not isinstance(size, str | int) or not str(size).isdecimal():
            raise InputError(
                f"the bucket's description of {self.name} has no size; {USE_A_MIRROR}"
            )
        return dict(about)

    def find_differences(self) -> list[str]:
        """Ask whether the file exists."""
        self._describe()
        return []

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the file, and return its location and version."""
        about = self._describe()
        size = int(about["size"])
        digest = hashlib.md5(usedforsecurity=False)
        check_space(part.parent, size)
        # The generation selects one version of the content, so all parts belong together even if the file changes.
        address = f"{self._url}?alt=media&generation={about['generation']}"
        with ResumingStream(address, size) as stream, part.open("wb") as out:
            while block := stream.read(BLOCK):
                digest.update(block)
                out.write(block)
        md5 = digest.hexdigest()
        announced = about.get(
            "md5Hash"
        )  # a file that was composed of several files has no MD5
        if announced is not None and digest.digest() != base64.b64decode(announced):
            raise InputError(
                f"the downloaded file has MD5 {md5}, not the announced one; {USE_A_MIRROR}"
            )
        return {
            "bucket": self.bucket,
            "name": self.name,
            "generation": about["generation"],
            "md5": md5,
        }


@dataclass(frozen=True)
class RepositoryFolder(Source):
    """A folder of a GitHub repository. All its files must be regular files without the executable bit.

    Args:
        tree: git's id of the folder at the commit (`git rev-parse COMMIT:FOLDER`).
        files: names, relative to `path`, of the files that are read. If all exist, nothing is downloaded.
        blobs: git's ids of files that copies of the repository can lack, by name.
    """

    repo: str
    commit: str
    folder: str
    tree: str
    path: str
    files: tuple[str, ...]
    blobs: Mapping[str, str] = field(default_factory=dict)

    title = "{0.folder} of the repository {0.repo}"

    @property
    def paths(self) -> list[str]:
        """Paths of `files` under the data root."""
        return [f"{self.path}/{file}" for file in self.files]

    @property
    def pin(self) -> Pin:
        """The commit, and git's id of the folder."""
        return Pin(
            self.repo,
            "github",
            self.commit,
            (f"{self.folder}/",),
            {self.folder: self.tree},
        )

    @property
    def url(self) -> str:
        """Address of the archive of the whole repository."""
        return f"{_ARCHIVES}/{self.repo}/tar.gz/{self.commit}"

    @property
    def target_folder(self) -> str:
        """The folder under the data root that receives the content."""
        return self.path

    def is_pinned_content(self, root: DataRoot) -> bool:
        """Whether the folder under the data root has the pinned content. Files with a known id in `blobs` may be absent."""
        folder = root / self.path
        return folder.is_dir() and tree_id(folder, self.blobs) == self.tree

    def find_differences(self) -> list[str]:
        """Ask whether the archive exists. Its tree id is compared when it is fetched."""
        with ResumingStream(self.url) as stream:
            io.BufferedReader(stream).peek(1)
        return []

    def fetch(self, folder: Path) -> None:
        """Download the whole folder, and check its tree id."""
        import requests

        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
            archive = Path(name) / "archive"
            part = Path(name) / "0"
            check_space(folder)
            try:
                with ResumingStream(self.url) as stream, archive.open("wb") as out:
                    copy_stream(stream, out, folder)
            except requests.HTTPError as error:
                status = error.response.status_code
                raise InputError(
                    f"the server answered with status {status} for {self.url}; {USE_A_MIRROR}"
                ) from error
            _unpack(archive, self, part)
            tree = tree_id(part)
            if tree != self.tree:
                raise InputError(
                    f"it has the git tree id {tree}, expected {self.tree}; {USE_A_MIRROR}"
                )
            # `files` are at the top, and if they exist, the folder counts as complete. So they come last.
            files = []
            for path in part.rglob("*"):
                if path.is_file():
                    files.append(path.relative_to(part))
            for file in sorted(files, key=lambda path: -len(path.parts)):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                os.replace(part / file, folder / file)


def tree_id(folder: Path, absent: Mapping[str, str] | None = None) -> str:
    """Compute git's id of a folder of regular files, as `git rev-parse COMMIT:FOLDER` gives it.

    Args:
        absent: git's ids of files that the folder may lack, by name.
    """
    ids: dict[str, str] = {}
    below: dict[str, dict[str, str]] = {}
    for name, blob in (absent or {}).items():
        first, _, rest = name.partition("/")
        if rest:
            below.setdefault(first, {})[rest] = blob
        else:
            ids[first] = blob
    folders = set()
    for child in folder.iterdir():
        if child.is_file():
            ids[child.name] = object_id("blob", child.read_bytes())
        else:
            ids[child.name] = tree_id(child, below.get(child.name))
            folders.add(child.name)
    # Git sorts the name of a folder as if it ended in a slash.
    names = sorted(ids, key=lambda name: name + "/" * (name in folders))
    entries = b""
    for name in names:
        mode = "40000" if name in folders else "100644"
        entries += f"{mode} {name}\0".encode() + bytes.fromhex(ids[name])
    return object_id("tree", entries)


def object_id(kind: str, content: bytes) -> str:
    """Compute git's id of an object. Its kind is `blob` for a file and `tree` for a folder."""
    # Git's ids are SHA-1. FIPS builds of Python refuse it unless it is declared not to be used for security.
    return hashlib.sha1(
        f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False
    ).hexdigest()


def _unpack(archive: Path, folder: RepositoryFolder, part: Path) -> None:
    """Write the folder's regular files. In the archive, one folder contains the whole repository."""
    part.mkdir()
    try:
        with (
            archive.open("rb") as packed,
            InflatingStream(packed, "the archive") as plain,
            open_members(plain) as members,
        ):
            for member in members:
                # `normalize` returns None for names that lead out of the folder. They become empty here and are
                # skipped.
                _, _, name = (normalize(member.name) or "").partition("/")
                content = members.extractfile(member) if member.isreg() else None
                is_wanted = name.startswith(f"{folder.folder}/")
                if content is None or not is_wanted or member.issparse():
                    continue
                # The space is checked for each member, because the archive does not announce its unpacked size.
                check_space(part, member.size)
                target = part / name.removeprefix(f"{folder.folder}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    shutil.copyfileobj(content, out)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"it is not a complete tar.gz archive ({type(error).__name__}); {USE_A_MIRROR}"
        ) from error
