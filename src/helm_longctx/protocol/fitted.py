"""A prompt that has been fitted into a limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fitted:
    """What is sent.

    Args:
        cut: whether something of the prompt was cut.
        tokens: its tokens, where all of it was read: it was not when it is surely short enough, or too long.
    """

    prompt: str
    cut: bool = False
    tokens: int | None = None
