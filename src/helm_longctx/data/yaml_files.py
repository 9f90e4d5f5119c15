"""Reads YAML files: an error is one line, and of users' files aliases that stand for too much are refused."""

import math
from pathlib import Path
from typing import Any, TextIO

import yaml
from yaml.composer import Composer

from helm_longctx.errors import InputError

_MOST_CHARACTERS = 1_000_000
"""Number of characters that the values of a file may have after each alias is replaced by its value. A file that itself
is longer may have `_MOST_TIMES` as many as it has."""

_MOST_TIMES = 4


class BoundedAliases:
    """A mixin for YAML constructors that refuses aliases of aliases for billions of values ("billion laughs")."""

    def construct_document(self, node: Any) -> Any:
        """Make the values. Raises an `InputError` if the aliases stand for too much, or a value contains itself."""
        mark = node.start_mark
        most = max(_MOST_CHARACTERS, _MOST_TIMES * (node.end_mark.index - mark.index))
        if _count_characters(node, {}) > most:
            problem = f"the aliases (*name) stand for more than {most:,} characters"
            allowed = "fewer aliases, and none in its own value"
            raise InputError(f"{mark.name}:{mark.line + 1}: {problem}; use {allowed}")
        return super().construct_document(node)  # type: ignore[misc]


def _count_characters(node: Any, counts: dict[int, float]) -> float:
    """Return the number of characters of a node's values, and 1 for each value. Aliases count as their values do."""
    if id(node) in counts:
        return counts[id(node)]
    counts[id(node)] = (
        math.inf
    )  # until its parts are counted: a part of itself has no end
    count = 1.0
    if isinstance(node.value, str):
        count += len(node.value)
    else:
        for part in node.value:
            # The parts of a mapping are pairs of nodes.
            for child in part if isinstance(part, tuple) else (part,):
                count += _count_characters(child, counts)
    counts[id(node)] = count
    return count


if yaml.__with_libyaml__:
    # libyaml parses in a sixth of the time. But its composer recurses in C, so that a deeply nested file would end the
    # process; PyYAML's own composer raises a `RecursionError`.

    class _Loader(BoundedAliases, Composer, yaml.CSafeLoader):
        def __init__(self, stream: TextIO):
            yaml.CSafeLoader.__init__(self, stream)
            Composer.__init__(self)

    class _TextLoader(BoundedAliases, Composer, yaml.CBaseLoader):
        def __init__(self, stream: TextIO):
            yaml.CBaseLoader.__init__(self, stream)
            Composer.__init__(self)

else:

    class _Loader(BoundedAliases, yaml.SafeLoader):  # type: ignore[no-redef]
        pass

    class _TextLoader(BoundedAliases, yaml.BaseLoader):  # type: ignore[no-redef]
        pass


def load_yaml(file: TextIO, *, as_text: bool = False) -> Any:
    """Read an open file, with all values as text if `as_text`, or raise an `InputError`."""
    try:
        return yaml.load(file, Loader=_TextLoader if as_text else _Loader)  # noqa: S506  # safe loaders
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise explain_yaml_error(Path(file.name), error) from None


def read_yaml(path: Path, *, as_text: bool = False) -> Any:
    """Read a file, with all values as text if `as_text`, or raise an `InputError`."""
    try:
        with path.open(encoding="utf-8") as file:
            return load_yaml(file, as_text=as_text)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


_PACKAGE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PACKAGE_TEXT_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""The loaders in C, where PyYAML has them. They are ten times as fast, but recurse in C: not for files of users."""


def parse_package_yaml(text: str) -> Any:
    """Parse the text of a file of an installed package."""
    return yaml.load(text, Loader=_PACKAGE_LOADER)  # noqa: S506  # a safe loader


def read_package_yaml(path: Path) -> Any:
    """Read a file of an installed package, with all values as text, or raise an `InputError`."""
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, Loader=_PACKAGE_TEXT_LOADER)  # noqa: S506  # it makes only texts
    except (yaml.YAMLError, ValueError) as error:
        raise explain_yaml_error(path, error) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def dump_yaml(content: Any) -> str:
    """Return plain data as YAML, with mappings in their order. It is written with libyaml, where PyYAML has it."""
    return str(yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))


def explain_yaml_error(path: Path, error: Exception) -> InputError:
    """Return the error for a file that is not YAML, whatever library or `ValueError` says so.

    It lacks the parser's text, because that quotes lines of the file and so perhaps a secret.
    """
    if isinstance(error, InputError):
        return error
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark else 1
    problem = getattr(error, "problem", None)
    problem = (
        problem
        or "it is not text, is nested too deeply, or a value does not have its type"
    )
    return InputError(
        f"{path}:{line}: the file is not YAML: {problem}; write plain YAML"
    )
