"""Makes HELM read YAML files quickly. Parsing its own takes most of a second of processor time in each command."""

from __future__ import annotations

import pickle
from functools import cache
from importlib import resources
from typing import Any

import yaml

load = yaml.load


def replace_load() -> None:
    """Let `yaml.load` and `yaml.safe_load` return copies of HELM's own files, which they parse once.

    Other files are read with libyaml, in a sixth of the time.
    """
    yaml.load = _load


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
