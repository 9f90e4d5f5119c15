"""Room on the disk, looked for before it is filled."""

from __future__ import annotations

import shutil
from pathlib import Path

from helm_longctx.errors import InputError

SPACE_MARGIN = 256 << 20
"""Bytes that stay free on the disk."""

RATIO = 200
"""How many times its size a packed file may unpack to. Texts come to 3 to 10 times, at most a thousand is possible."""
ROOM = 1 << 30
"""Bytes that any packed file may unpack to: a part of an archive may repeat one sentence."""


def check_ratio(name: str, unpacked: int, packed: int) -> None:
    """Refuse a packed file that would fill the disk, or take hours to read.

    Args:
        unpacked: bytes that came out of it, or that it says will come.
        packed: bytes that were read for that.

    Raises:
        InputError: it unpacks to too many.
    """
    if unpacked > ROOM + RATIO * packed:
        raise InputError(f"{name} unpacks to more than {RATIO} times its size: it is no data but made to fill a disk")


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
