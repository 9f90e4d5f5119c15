"""Room on the disk, looked for before it is filled."""

from __future__ import annotations

import shutil
from pathlib import Path

from helm_longctx.errors import InputError

SPACE_MARGIN = 256 << 20
"""Bytes that stay free on the disk."""


def check_space(folder: Path, size: int = 0) -> None:
    """Refuse to go on if `size` bytes do not fit on the disk of `folder`.

    Raises:
        InputError: with what is needed and what is free.
    """
    needed, free = size + SPACE_MARGIN, shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{folder} needs {needed / 1e9:.2f} GB of free disk space and has {free / 1e9:.2f} GB; make room"
        )
