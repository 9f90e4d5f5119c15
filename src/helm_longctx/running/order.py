"""Requests in an order in which those that share a prefix follow each other: a server's prefix cache then works."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

STEP = 8192
"""Characters by which prefixes are compared."""


def by_prefix(prompts: Iterable[str]) -> list[int]:
    """Numbers of the prompts, ordered: groups by common prefix, each where its first prompt stands.

    Args:
        prompts: read once, one at a time.
    """
    first: dict[bytes, int] = {}
    keys = [_key(prompt, number, first) for number, prompt in enumerate(prompts)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _key(prompt: str, number: int, first: dict[bytes, int]) -> list[int]:
    """For each prefix of so many steps, the number of the first prompt that begins with it."""
    running = blake2b(digest_size=16)
    key = []
    for start in range(0, len(prompt), STEP):
        running.update(prompt[start : start + STEP].encode("utf-8", "surrogatepass"))
        key.append(first.setdefault(running.digest(), number))
    return key
