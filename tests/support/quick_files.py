"""Makes HELM read its files quickly. Parsing its own YAML takes most of a second of processor time in each command."""

from __future__ import annotations

import copy
import pickle
from functools import cache
from importlib import resources
from typing import Any

import pyhocon
import yaml

load = yaml.load
parse = pyhocon.ConfigFactory.parse_string


def replace_parsers() -> None:
    """Let `yaml.load` and `yaml.safe_load` return copies of HELM's own files, which they parse once.

    Other YAML files are read with libyaml, in a sixth of the time. Equal credentials are parsed once: HELM reads them
    several times in each run, and builds the grammar of their language each time.
    """
    yaml.load = _load
    pyhocon.ConfigFactory.parse_string = _parse


def _load(stream: Any, Loader: Any) -> Any:  # noqa: N803  # PyYAML's name
    file = _pickles().get(getattr(stream, "name", None))
    if file is not None:
        return pickle.loads(file)
    return load(stream, yaml.CSafeLoader if Loader is yaml.SafeLoader else Loader)


@cache
def _pickles() -> dict[str | None, bytes]:
    """Return the content of HELM's files by their paths."""
    files = [
        file
        for file in resources.files("helm.config").iterdir()
        if file.name.endswith(".yaml")
    ]
    return {
        str(file): pickle.dumps(
            load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        )
        for file in files
    }


def _parse(content: str, *options: Any, **named_options: Any) -> Any:
    # These depend on variables of the process and on other files.
    is_alone = "$" not in content and "include" not in content
    if not is_alone or options or named_options:
        return parse(content, *options, **named_options)
    return copy.deepcopy(_parse_once(content))


@cache
def _parse_once(content: str) -> Any:
    return parse(content)
