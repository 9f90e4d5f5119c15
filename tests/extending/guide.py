"""Reads the code blocks of a guide: files to write, edits to make, commands to run, and output to expect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.programs import BIN

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COPIED = ("docs", "run_specs", "src", "tests")
"""The folders that a copy of the repository has, besides the files at its top."""

_BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<path>[^"]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block. `path` is its title, the file that it shows."""

    language: str
    path: str
    text: str


class Guide:
    """A page of the documentation that can be followed by a program."""

    def __init__(self, page: str):
        self.text = (DOCS / page).read_text(encoding="utf-8")
        self.blocks = [
            Block(m["language"], m["path"] or "", m["text"])
            for m in _BLOCK.finditer(self.text)
        ]

    @property
    def files(self) -> dict[str, str]:
        """Return the files that the guide shows whole, by path."""
        return {
            block.path: block.text
            for block in self.blocks
            if block.path and block.language != "diff"
        }

    @property
    def edits(self) -> list[Block]:
        """Return the guide's changes of existing files."""
        return [block for block in self.blocks if block.language == "diff"]

    @property
    def script(self) -> str:
        """Return all commands in order."""
        return "".join(block.text for block in self.blocks if block.language == "bash")

    @property
    def output(self) -> list[str]:
        """Return the lines that the commands print, in order."""
        return [
            line
            for block in self.blocks
            if block.language == "text"
            for line in block.text.splitlines()
        ]

    def run(self, folder: Path, modules: Path, **environment: str) -> str:
        """Run all commands in a folder, and return what they print. Python finds the modules of a second folder."""
        done = run_with_modules(
            [modules],
            "bash",
            "-euo",
            "pipefail",
            "-c",
            self.script,
            folder=folder,
            **environment,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def write(self, folder: Path) -> None:
        """Write the files under a folder."""
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")


def apply_edit(edit: Block, folder: Path) -> None:
    """Make a change. The lines of the block without `+` must occur in the file exactly once."""
    lines = edit.text.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    path = folder / edit.path
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, (
        f"{edit.path} does not have these lines once:\n{before}"
    )
    path.write_text(text.replace(before, after), encoding="utf-8")


def copy_repository(folder: Path) -> None:
    """Copy what git has of the repository, as far as benchmarks and their pages need it."""
    for path in filter(Path.is_file, ROOT.iterdir()):
        shutil.copy(path, folder)
    for name in COPIED:
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", "*.conf", "*.egg-info"),
        )


def run_in_copy(copy: Path, *command: str, **environment: str) -> str:
    """Return what a command prints when it uses a copy of the repository."""
    done = run_with_modules([copy / "src", copy], *command, folder=copy, **environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout


def run_with_modules(
    modules: Sequence[Path], *command: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without keys of APIs.

    Args:
        modules: the folders in which Python looks for modules first.
        environment: variables besides those of this process.
    """
    inherited = {}
    for name, value in os.environ.items():
        if not name.endswith("_API_KEY"):
            inherited[name] = value
    paths = [str(path) for path in modules]
    if "PYTHONPATH" in os.environ:
        paths.append(os.environ["PYTHONPATH"])
    variables = {
        **inherited,
        "PYTHONPATH": os.pathsep.join(paths),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        **environment,
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
