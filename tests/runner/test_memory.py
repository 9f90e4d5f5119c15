"""Memory that long prompts needed goes back to the system."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
from helm.common.request import RequestResult

from helm_longctx.runner import asking
from helm_longctx.runner.asking import MEMORY_TOKENS, Progress

ANSWER = RequestResult(True, [], [], cached=False)

PIECE = 100_000
PIECES = 1_000
"""Bytes, below the size for which glibc asks the system each time, and how many of them."""


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf(
        "SC_PAGESIZE"
    )


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the allocator is not glibc's"
)
def test_memory_is_given_back() -> None:
    """The allocator keeps pieces that were freed below one that is in use, until prompts of enough tokens are done."""
    pieces = [bytes([number % 256]) * PIECE for number in range(PIECES)]
    in_use = pieces[-1]
    del pieces
    kept = resident()
    progress = Progress(2)
    progress.count(MEMORY_TOKENS - 1, ANSWER)
    assert resident() > kept - PIECE * PIECES // 10
    progress.count(1, ANSWER)
    assert resident() < kept - PIECE * PIECES // 2
    assert len(in_use) == PIECE


def test_another_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the function does not exist, requests are counted as usual."""
    monkeypatch.setattr(asking.ctypes, "CDLL", lambda name: object())
    Progress(1).count(MEMORY_TOKENS, ANSWER)
