"""Locates a configuration's values for errors: a line of a file, or an option of the command."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from helm_longctx.errors import InputError, UnsupportedHelmError

KeyPath = tuple[str | int, ...]
"""Keys and positions that lead to a value, such as `("models", 0, "url")`."""


@dataclass(frozen=True)
class SourceMap:
    """Where each value of a configuration stands: in a file, or the option that gave the value at a key path."""

    file: str = ""
    document: Any = None
    options: Mapping[KeyPath, str] = field(default_factory=dict)

    def error(self, path: Iterable[str | int], message: str) -> InputError:
        """Return an error about the value at a key path. The message follows the location."""
        return InputError(f"{self.locate(tuple(path))}{message}")

    @contextmanager
    def at(self, path: Iterable[str | int]) -> Iterator[None]:
        """Put the location of a value before the messages of errors in the block."""
        try:
            yield
        except UnsupportedHelmError:  # no value of the configuration causes it
            raise
        except InputError as error:
            raise self.error(path, f": {error}") from error

    def locate(self, path: KeyPath) -> str:
        """Return the location of a value: `run.yaml:12: models[0].url`, or the option that gave it or a part of it."""
        for size in range(len(path), 0, -1):
            if option := self.options.get(path[:size]):
                return option + _steps(path[size:])
        for option_path, option in self.options.items():
            if path and option_path[: len(path)] == path:
                return option
        if self.file:
            prefix = f"{self.file}:{self.line(path)}: "
        else:
            prefix = ""
        return prefix + _steps(path).removeprefix(".")

    def line(self, path: KeyPath) -> int:
        """Return the line of a value, or of the innermost part around it that the file has. Lines count from 1."""
        node = self.document
        line = 1
        for part in path:
            if isinstance(node, CommentedMap) and part in node:
                positions = node.lc.data or {}
                # A part that another mapping was merged in has no position.
                line = 1 + int(
                    positions[part][0] if part in positions else node.lc.line
                )
            elif (
                isinstance(node, CommentedSeq)
                and isinstance(part, int)
                and part < len(node)
            ):
                line = 1 + int(node.lc.item(part)[0])
            else:
                break
            node = node[part]
        return line


def _steps(path: KeyPath) -> str:
    """Write a path as in JavaScript: `.models[0].url`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text
