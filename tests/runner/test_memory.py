"""Memory that long prompts needed goes back to the system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helm_longctx.runner import asking
from helm_longctx.runner.asking import MEMORY_TOKENS, Memory

PIECE, PIECES = 100_000, 1_000
"""Bytes, below the size for which glibc asks the system each time, and how many of them."""


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(asking._find_trim() is None, reason="the allocator is not glibc's")
def test_memory_is_given_back() -> None:
    """The allocator keeps pieces that were freed below one that is in use, until prompts of enough tokens are done."""
    pieces = [bytes([number % 256]) * PIECE for number in range(PIECES)]
    in_use = pieces[-1]
    del pieces
    kept, counter = resident(), Memory()
    counter.release(MEMORY_TOKENS - 1)
    assert resident() > kept - PIECE * PIECES // 10
    counter.release(1)
    assert resident() < kept - PIECE * PIECES // 2
    assert len(in_use) == PIECE


def test_another_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the function does not exist, nothing happens."""
    monkeypatch.setattr(asking.ctypes, "CDLL", lambda name: object())
    asking._find_trim.cache_clear()
    try:
        Memory().release(MEMORY_TOKENS)
        assert asking._find_trim() is None
    finally:
        asking._find_trim.cache_clear()
