"""The code blocks of a guide: files to write, edits to make, commands to run, and output to expect."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"

_BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<path>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block; `path` is its title, the file that it is about."""

    language: str
    path: str
    text: str


class Guide:
    """A page of the documentation that can be followed by a program."""

    def __init__(self, page: str):
        self.text = (DOCS / page).read_text(encoding="utf-8")
        self.blocks = [Block(m["language"], m["path"] or "", m["text"]) for m in _BLOCK.finditer(self.text)]

    @property
    def files(self) -> dict[str, str]:
        """Files that the guide writes whole, by path."""
        return {block.path: block.text for block in self.blocks if block.path and block.language != "diff"}

    @property
    def edits(self) -> list[Block]:
        """Changes of files that are there."""
        return [block for block in self.blocks if block.language == "diff"]

    @property
    def script(self) -> str:
        """All commands, in order."""
        return "".join(block.text for block in self.blocks if block.language == "bash")

    @property
    def output(self) -> list[str]:
        """Lines that the commands print, in order."""
        return [line for block in self.blocks if block.language == "text" for line in block.text.splitlines()]

    def write(self, folder: Path) -> None:
        """Write the files under a folder."""
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")


def apply_edit(edit: Block, folder: Path) -> None:
    """Make a change. The lines of the block without `+` must stand in the file exactly once."""
    lines = edit.text.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    path = folder / edit.path
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{edit.path} does not have these lines once:\n{before}"
    path.write_text(text.replace(before, after), encoding="utf-8")
