"""Models of the local server: what they accept, how they count tokens, and which prefixes of prompts they keep."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CHARACTERS = 4
"""The number of characters in a token."""

STEP = 128
"""OpenAI caches prefixes in steps of so many tokens."""

KEPT_SECONDS = 300.0
"""Seconds for which a prefix stays in the cache after its last use."""


@dataclass(frozen=True)
class Model:
    """A model of the server. Without any argument it accepts everything.

    Args:
        context: its tokens of prompt and answer together; None for no limit.
        refuses: names of parameters.
        only_default: names of parameters that can only have the value 1.
        reasoning: what it thinks before each answer, in OpenAI's protocol always, in Anthropic's if it is asked to.
        hides: whether its reasoning is counted but not returned.
        streams_only: whether it answers only as a stream.
        cache_minimum: tokens of the shortest prefix that is cached.
        cuts: whether it ends answers at the limit of tokens.
    """

    context: int | None = None
    refuses: tuple[str, ...] = ()
    only_default: tuple[str, ...] = ()
    reasoning: str = ""
    hides: bool = False
    streams_only: bool = False
    cache_minimum: int = 1024
    cuts: bool = True


@dataclass(frozen=True)
class Refusal:
    """An error that says why a request is not answered; `kind` and `code` are the protocol's words."""

    status: int
    kind: str
    message: str
    param: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Counts:
    """The tokens of a request. `prompt` includes cached tokens, and `output` includes the reasoning."""

    prompt: int = 1
    cached: int = 0
    written: int = 0
    output: int = 1
    reasoning: int = 0


Prefix = tuple[int, bytes]
"""The number of tokens of a prefix, and its digest."""


def count_tokens(text: str) -> int:
    """Return the number of tokens that a text has on average at providers."""
    return -(-len(text) // CHARACTERS)


def prefixes(model: str, pieces: Iterable[str]) -> list[Prefix]:
    """Return all prefixes of a prompt of these pieces, each up to the end of a piece."""
    hasher = hashlib.sha256(model.encode())
    prefix_digests = []
    size = 0
    for piece in pieces:
        hasher.update(piece.encode("utf-8", "surrogatepass"))
        size += len(piece)
        prefix_digests.append((size // CHARACTERS, hasher.digest()))
    return prefix_digests


def steps(text: str) -> Iterable[str]:
    """Return a text in OpenAI's steps; the rest at its end is never cached."""
    size = STEP * CHARACTERS
    return (
        text[start : start + size] for start in range(0, len(text) - size + 1, size)
    )


class PromptCache:
    """A cache of the prefixes that were answered lately.

    Attributes:
        seconds_ahead: seconds by which the cache's clock is ahead.
        is_frozen: whether nothing is kept, because all requests are answered at the same time.
    """

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[float, float]] = {}
        self._lock = threading.Lock()
        self.seconds_ahead = 0.0
        self.is_frozen = False

    def read(self, prefixes: Sequence[Prefix]) -> int:
        """Return the tokens of the longest prefix that is kept."""
        with self._lock:
            now = time.monotonic() + self.seconds_ahead
            kept = [
                prefix
                for prefix in prefixes
                if self._kept.get(prefix[1], (0.0, 0.0))[0] > now
            ]
            for _, digest in kept:
                seconds = self._kept[digest][1]
                self._kept[digest] = (now + seconds, seconds)
        return max((tokens for tokens, _ in kept), default=0)

    def write(self, prefixes: Sequence[Prefix], seconds: float = KEPT_SECONDS) -> None:
        """Keep these prefixes for some seconds after each use."""
        with self._lock:
            end = time.monotonic() + self.seconds_ahead + seconds
            if not self.is_frozen:
                self._kept.update((digest, (end, seconds)) for _, digest in prefixes)
