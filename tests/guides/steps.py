"""Reads the steps of a page of the documentation: files that it shows, and commands in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MARK = re.compile(r"<!-- not run: (.+) -->")
_TITLE = re.compile(r'```\w+ title="(.+)"')
_ASSIGNMENT = re.compile(r"export (.*)")


class Step(NamedTuple):
    """What a reader does.

    Args:
        line: number of its line in the page.
        text: a command line, or the content of a file.
        path: the file that it writes; empty for a command.
        mark: why tests do not run it; empty if they do.
    """

    line: int
    text: str
    path: str = ""
    mark: str = ""


class _Block(NamedTuple):
    """A block of code: fenced, with its first line, or indented."""

    line: int
    head: str
    lines: list[str]
    mark: str


def read_steps(page: Path) -> Iterator[Step]:
    """Yield the files with a title, and the lines of all blocks that are not marked as something else than commands."""
    for block in _blocks(page.read_text(encoding="utf-8").splitlines()):
        if title := _TITLE.match(block.head):
            yield Step(
                block.line, "".join(f"{line}\n" for line in block.lines), title[1]
            )
        elif block.head in ("", "```bash"):
            yield from _commands(block)


def _blocks(lines: list[str]) -> Iterator[_Block]:
    mark = ""
    number = 0
    while number < len(lines):
        start = number
        line = lines[number]
        number += 1
        if match := _MARK.match(line):
            mark = match[1]
        elif line.startswith("```"):
            number = lines.index("```", number) + 1
            yield _Block(start + 2, line, lines[start + 1 : number - 1], mark)
            mark = ""
        elif line.startswith("    "):
            while number < len(lines) and (
                lines[number].startswith("    ") or not lines[number]
            ):
                number += 1
            yield _Block(
                start + 1, "", [line[4:] for line in lines[start:number]], mark
            )
            mark = ""
        elif line:
            mark = ""


def _commands(block: _Block) -> Iterator[Step]:
    """The command lines of a block; a line that ends in a backslash goes on in the next."""
    text = ""
    first = 0
    for number, line in enumerate(block.lines):
        first, text = (first, text) if text else (number, "")
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        for part in text.split(" && "):
            yield Step(block.line + first, part, mark=block.mark)
        text = ""
