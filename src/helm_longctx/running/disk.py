"""A disk that is full is named, with what is kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helm_longctx.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space, no space in a user's quota, and more than a user's limit of file sizes."""


@contextmanager
def name_full_disk(folder: Path, kept: str) -> Iterator[None]:
    """Name a full disk in one line.

    Args:
        folder: where the block writes; it is named where the error names no file.
        kept: what is not lost.

    Raises:
        InputError: a file cannot be written because the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise InputError(
            f"{error.filename or folder} cannot be written: {error.strerror}; {kept}; make room, then give the same "
            "command again"
        ) from error
