"""Gets a folder of a GitHub repository at a fixed commit.

GitHub may change the bytes of its archives, so a checksum of the archive is of no use. The content is checked instead:
git's tree id of the folder covers the name and the content of every file in it.
"""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.data.download import ResumingStream, Source, check_space
from helm_longctx.data.root import USE_A_MIRROR
from helm_longctx.data.unpack import normalize
from helm_longctx.errors import InputError

ARCHIVES = "https://codeload.github.com"
"""Server of repository archives: `<ARCHIVES>/<owner>/<name>/tar.gz/<commit>`."""


@dataclass(frozen=True)
class RepositoryFolder(Source):
    """A folder of a GitHub repository. All its files must be regular files without the executable bit.

    Args:
        tree: git's id of the folder at the commit (`git rev-parse COMMIT:FOLDER`).
        files: names, relative to `path`, of the files that are read. If all exist, nothing is downloaded.
    """

    repo: str
    commit: str
    folder: str
    tree: str
    path: str
    files: tuple[str, ...]

    title = "{0.folder} of the repository {0.repo}"

    @property
    def paths(self) -> list[str]:
        """Paths of `files` under the data root."""
        return [f"{self.path}/{file}" for file in self.files]

    @property
    def url(self) -> str:
        """Address of the archive of the whole repository."""
        return f"{ARCHIVES}/{self.repo}/tar.gz/{self.commit}"

    @property
    def place(self) -> str:
        """The folder under the data root that receives the content."""
        return self.path

    def fetch(self, folder: Path) -> None:
        """Download the whole folder, and check its tree id."""
        import requests

        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
            archive, part = Path(name) / "archive", Path(name) / "0"
            check_space(folder)
            try:
                with ResumingStream(self.url) as stream, archive.open("wb") as out:
                    shutil.copyfileobj(io.BufferedReader(stream), out)
            except requests.HTTPError as error:
                status = error.response.status_code
                raise InputError(f"the server answered with status {status} for {self.url}; {USE_A_MIRROR}") from error
            _unpack(archive, self, part)
            if (found := tree_id(part)) != self.tree:
                raise InputError(f"it has the git tree id {found}, expected {self.tree}; {USE_A_MIRROR}")
            # `files` are at the top, and if they exist, the folder counts as complete. So they come last.
            files = [path.relative_to(part) for path in part.rglob("*") if path.is_file()]
            for file in sorted(files, key=lambda path: -len(path.parts)):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                os.replace(part / file, folder / file)


def tree_id(folder: Path) -> str:
    """Compute git's id of a folder of regular files, as `git rev-parse COMMIT:FOLDER` gives it."""
    # Git sorts the name of a folder as if it ended in a slash.
    children = sorted(folder.iterdir(), key=lambda child: child.name + "/" * child.is_dir())
    entries = b""
    for child in children:
        is_file = child.is_file()
        digest = object_id("blob", child.read_bytes()) if is_file else tree_id(child)
        entries += f"{'100644' if is_file else '40000'} {child.name}\0".encode() + bytes.fromhex(digest)
    return object_id("tree", entries)


def object_id(kind: str, content: bytes) -> str:
    """Compute git's id of an object. Its kind is `blob` for a file and `tree` for a folder."""
    # Git's ids are SHA-1. FIPS builds of Python refuse it unless it is declared not to be used for security.
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def _unpack(archive: Path, folder: RepositoryFolder, part: Path) -> None:
    """Write the folder's regular files. In the archive, one folder contains the whole repository."""
    part.mkdir()
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                # `normalize` returns None for names that lead out of the folder. They become empty here and are
                # skipped.
                _, _, name = (normalize(member.name) or "").partition("/")
                content = members.extractfile(member) if member.isreg() else None
                if content is None or not name.startswith(f"{folder.folder}/"):
                    continue
                # The space is checked for each member, because the archive does not announce its unpacked size.
                check_space(part, member.size)
                target = part / name.removeprefix(f"{folder.folder}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    shutil.copyfileobj(content, out)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"it is not a complete tar.gz archive ({type(error).__name__}); {USE_A_MIRROR}") from error
