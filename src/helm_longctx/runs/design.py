"""Keeps what a command asks beside the answers in its folder, so that the same command continues, and no other one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.runs.files import FORMAT_ERRORS
from helm_longctx.writing import replace_file

_FILE = "design.json"


def read_design(folder: Path, command: str) -> dict[str, Any] | None:
    """Return what an earlier command has kept in a folder, with its `model` and `seed`. Returns None without any.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        design = json.loads(path.read_text(encoding="utf-8"))
        is_design = {"model", "seed"} <= design.keys()
    except FORMAT_ERRORS:
        is_design = False
    if not is_design:
        raise InputError(
            f"{command}: --to={folder}: {_FILE} in this folder cannot be read;"
            " give another folder"
        )
    return dict(design)


def keep_design(
    folder: Path,
    design: Mapping[str, Any],
    command: str,
    what: str,
) -> None:
    """Keep what a command asks in a folder, which is created.

    Args:
        what: what the command makes, such as "a check".

    Raises:
        InputError: the folder has answers to something else.
    """
    content = json.dumps(design, indent=2)
    kept = read_design(folder, command)
    if kept not in (None, json.loads(content)):
        raise InputError(
            f"{command}: --to={folder}: this folder has {what} with other options;"
            " give another one"
        )
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / _FILE, content.encode(), b"\n")
