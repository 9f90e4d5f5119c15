"""Gives an address at which no server listens."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def closed_address() -> Iterator[str]:
    """Yield the address of a port that refuses connections. It is bound meanwhile, so that no other program listens there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
