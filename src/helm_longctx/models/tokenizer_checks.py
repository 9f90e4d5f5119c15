"""Checks a tokenizer whose files come from somebody else, before it reads long prompts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError, shorten
from helm_longctx.models.fast_tokenizers import FILE

_MOST_BYTES = 256 << 20
"""Bytes of the largest tokenizer file that is read. Those of the largest vocabularies have about 35 MB."""

_MOST_SECONDS = 1.0
"""Processor seconds that a tokenizer may take for a probe. Others need a tenth of a second for the longest one, and one
whose pattern takes quadratic time needs several."""

_SIZES = (500, 2_000, 8_000, 32_000)
"""Characters of the probes, short ones first: a pattern of cubic time would never end with a long one."""

_PROBES = (" ", "a", "1", "\n", ".", "word ", "一")
"""Texts of one kind, for which patterns of a tokenizer that take quadratic time are slowest."""

_checked: set[tuple[str, int]] = set()
"""Names and dates of tokenizers that this process has found to be fast enough."""


def check_size(name: str, file: Path) -> None:
    """Check the size of a tokenizer's file, if it exists. Parsing takes many times its size.

    Args:
        name: what the user called the tokenizer, with the option's name.

    Raises:
        InputError: the file is too large to be a tokenizer.
    """
    size = file.stat().st_size if file.is_file() else 0
    if size > _MOST_BYTES:
        raise InputError(
            f"{name}: {file.name} has {size:,} bytes; a tokenizer has at most {_MOST_BYTES:,}"
        )


def check_speed(tokenizer: Any, name: str) -> None:
    """Encode long texts of one kind each, if the tokenizer is one in Rust, whose patterns its file chooses.

    Args:
        name: its file, its folder or its name on the hub. A file that has not changed is checked once in a process.

    Raises:
        InputError: the tokenizer needs more than `_MOST_SECONDS` for a text, or fails.
    """
    backend = _find_backend(tokenizer)
    identity = (name, _find_date(Path(name)))
    if backend is None or identity in _checked:
        return
    for size in _SIZES:
        for probe in _PROBES:
            _check_probe(backend, probe * (size // len(probe)) + "\0", name)
    _checked.add(identity)


def _find_date(path: Path) -> int:
    """Return when a tokenizer's file was last changed, in nanoseconds; 0 for one that is not in a folder."""
    file = path / FILE if path.is_dir() else path
    return file.stat().st_mtime_ns if file.is_file() else 0


def _check_probe(backend: Any, text: str, name: str) -> None:
    """Encode a text and measure the processor time."""
    start = time.thread_time()
    try:
        backend.encode(text)
    # A pattern that gives up is a panic in Rust, of which Python makes an error that is no `Exception`.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        reason = f"{type(error).__name__}: {shorten(str(error), 200)}"
        raise InputError(
            f"{name}: its tokenizer fails for a long text ({reason})"
        ) from None
    seconds = time.thread_time() - start
    if seconds > _MOST_SECONDS:
        raise InputError(
            f"{name}: its tokenizer needs {seconds:.1f} seconds for {len(text):,} characters of one kind; its pattern"
            " takes quadratic time"
        )


def _find_backend(tokenizer: Any) -> Any:
    """Return the tokenizer of the package `tokenizers` in a tokenizer; None if there is none, as in tiktoken's."""
    if getattr(tokenizer, "is_fast", False):
        return tokenizer.backend_tokenizer
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        return tokenizer
    return None
