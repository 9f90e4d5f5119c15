"""Reading a run's files, which can be cut off or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ijson
import orjson

from helm_longctx.errors import InputError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong inside is that file's fault.

    Raises:
        InputError: it cannot be read, or has not what it should have.
    """
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ijson.JSONError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__}); make that run again") from error


def read_json(path: Path) -> Any:
    """A small JSON file.

    Raises:
        InputError: it cannot be read.
    """
    with reading(path):
        return orjson.loads(path.read_bytes())
