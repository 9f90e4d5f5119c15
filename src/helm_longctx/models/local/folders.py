"""Finds out whether a model in a folder is still the same: all files that change answers, with their contents."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

_WHOLE = 64 << 20
"""Bytes up to which a file is read whole."""

_BLOCK = 64 << 10
"""Bytes of each block that is read of a larger file."""

_BLOCKS = 1024
"""Blocks that are read of a larger file, evenly spread, so that a tensor of one part in a thousand has one."""

_SIZE = 8
"""Bytes at the start of a safetensors file that say how long its header is."""

_MOST_HEADER = 100_000_000
"""Bytes that a header may have, as in the package safetensors."""

_WITHOUT_EFFECT = (
    *(
        "optimizer*",
        "scheduler*",
        "rng_state*",
        "scaler*",
        "trainer_state.json",
        "training_args.*",
    ),
    "*.md",
    "*.log",
    "events.out.*",
    "*.lock",
    "*.tmp",
)
"""Names of files that a training or a repository has beside a model, and that no answer depends on."""

_OTHER_MODELS = ("checkpoint-*", "global_step*", "runs", "wandb", "logs")
"""Names of sub-folders with other models or with logs of a training."""


def list_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a model's folder that can change its answers, in a fixed order.

    These are all but those of a training and hidden ones: weights, configurations, tokenizers, templates, adapters,
    code, also in sub-folders.
    """
    for path, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(
            name for name in folders if not _is_left_out(name, _OTHER_MODELS)
        )
        for name in sorted(names):
            if (
                not _is_left_out(name, _WITHOUT_EFFECT)
                and (Path(path) / name).is_file()
            ):
                yield Path(path) / name


def digest_folder(folder: Path) -> str:
    """Return a digest of what is in the files of a model, 16 hexadecimal digits.

    Of a file above `_WHOLE` it covers the size, the time and `_BLOCKS` blocks, because a model can have a terabyte.
    """
    sha = hashlib.sha256()
    for file in list_files(folder):
        sha.update(
            f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode()
        )
        _add_content(sha, file)
    return sha.hexdigest()[:16]


def stamp_folder(folder: Path) -> str:
    """Return the sizes and times of the files of a model. It is cheap, and shows whether a file is being written."""
    stamps = []
    for file in list_files(folder):
        status = file.stat()
        stamps.append(
            f"{file} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        )
    return "\n".join(stamps)


def read_shapes(folder: Path) -> dict[str, list[int]] | None:
    """Return the shapes of the tensors in a folder's safetensors files by name, or None if one cannot be read.

    Only the headers are read (https://github.com/huggingface/safetensors#format).
    """
    shapes: dict[str, list[int]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        header = _read_header(file)
        if header is None:
            return None
        for name, facts in header.items():
            if name != "__metadata__":
                shapes[name] = facts["shape"]
    return shapes


def count_tensors(folder: Path) -> int | None:
    """Return the number of tensors in a folder's safetensors files, or None if one cannot be read."""
    shapes = read_shapes(folder)
    return None if shapes is None else len(shapes)


def _read_header(file: Path) -> dict[str, Any] | None:
    try:
        with file.open("rb") as opened:
            (size,) = struct.unpack("<Q", opened.read(_SIZE))
            if size <= _MOST_HEADER:
                header = json.loads(opened.read(size))
            else:
                header = None
    except (OSError, ValueError, struct.error, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def _is_left_out(name: str, patterns: tuple[str, ...]) -> bool:
    return name.startswith(".") or any(fnmatch(name, pattern) for pattern in patterns)


def _add_content(sha: hashlib._Hash, file: Path) -> None:
    status = file.stat()
    with file.open("rb") as opened:
        if status.st_size <= _WHOLE:
            while block := opened.read(_BLOCK):
                sha.update(block)
            return
        sha.update(str(status.st_mtime_ns).encode())
        for number in range(_BLOCKS):
            # The first block has the start of the file, and the last one its end.
            opened.seek((status.st_size - _BLOCK) * number // (_BLOCKS - 1))
            sha.update(opened.read(_BLOCK))
