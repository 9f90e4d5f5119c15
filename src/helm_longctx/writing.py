"""Writes files in one step: whenever the process ends, either the old or the new content is on disk, and it is whole."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.errors import InputError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space left, the user's quota exceeded, or the user's limit on file sizes exceeded."""

_NO_REPLACING = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)
"""Why another file cannot take the place of one: the folder is not writable, or the file is a container's mount."""

_DEVICES = (Path("/dev"), Path("/proc"))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which takes the place of a file at the end of the block.

    After an error in the block the old file is unchanged. A link is replaced, and not followed.
    """
    # The temporary file is in the same folder, because `os.replace` is one step only within a disk. Each writer has its
    # own: of two commands that write the same file at once, neither takes away or fills the other's.
    part = path.with_name(f"{path.name}.{threading.get_native_id()}.part")
    try:
        yield part
        os.replace(part, path)
    except BaseException as error:
        # On a full disk the part would take the room that other files need.
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part)):
            # The user knows the file, and not the temporary one.
            error.filename = str(path)
        raise


def replace_file(path: Path, *data: bytes, pieces: Iterable[bytes] = ()) -> None:
    """Write a file so that either the old or the new content is complete on disk, whenever the process ends."""
    with replacing(path) as part, part.open("wb") as file:
        file.writelines(chain(data, pieces))
        file.flush()
        os.fsync(file.fileno())


def replace_page(path: Path, content: bytes) -> None:
    """Write a file that can be made again as `replace_file` does, but without waiting for the disk.

    A report has hundreds of them. After a failure of power one can be empty.
    """
    with replacing(path) as part:
        part.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write content as JSON to a file that an option of the user names. See `write_output`."""
    option = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    write_output(path, orjson.dumps(content, option=option))


def write_output(path: Path, content: bytes) -> None:
    """Write a file that an option of the user names, in one step where the system can do that.

    A link is followed, and the file keeps its permissions. What is no file, such as `/dev/stdout` or a pipe, and a
    file in a folder in which no other one can be made, are written in place.
    """
    is_device = any(folder in path.absolute().parents for folder in _DEVICES)
    if is_device or (path.exists() and not path.is_file()):
        path.write_bytes(content)
        return
    file = path.resolve()
    try:
        with replacing(file) as part:
            part.write_bytes(content)
            with suppress(FileNotFoundError):
                shutil.copymode(file, part)
    except OSError as error:
        if error.errno not in _NO_REPLACING or not file.exists():
            raise
        file.write_bytes(content)


@contextmanager
def explain_full_disk(folder: Path, summary: str) -> Iterator[None]:
    """Raise an `InputError` of one line if a file cannot be written because the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        what = f"{error.filename or folder} cannot be written: {error.strerror}"
        raise InputError(
            f"{what}; {summary}; make room, then run the same command again"
        ) from error
