"""Helpers for tasks whose text is generated: how much of it fills a length, and evidence between other lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from helm_longctx.tasks.token_estimate import estimate_tokens

FILL = 0.95
"""Share of the length that a prompt fills, by the estimate of tokens. The rest is for the answer, and for tokenizers
that make more tokens than the estimate."""

_PROBE = 64
"""Number of lines from which the tokens of a line are estimated."""


def count_lines(length: int, draw: Callable[[], str], rest: int) -> int:
    """Return how many lines fill a length, at least one.

    Args:
        length: tokens of the prompt and the answer.
        draw: returns another line. It is called for the estimate, too.
        rest: tokens of the prompt besides the lines: the question and the instructions.
    """
    probe = "\n".join(draw() for _ in range(_PROBE))
    tokens = FILL * length - rest
    return max(1, int(tokens * _PROBE / estimate_tokens(probe)))


def draw_lines(length: int, draw: Callable[[], str], rest: int) -> list[str]:
    """Return as many lines as fill a length; see `count_lines`."""
    lines = []
    for _ in range(count_lines(length, draw, rest)):
        lines.append(draw())
    return lines


def insert_lines(
    lines: Sequence[str], inserted: Sequence[str], depths: Sequence[float]
) -> list[str]:
    """Return the lines with others between them, each at its depth, 0 (start) to 1 (end)."""
    positions = []
    for depth in depths:
        positions.append(round(depth * len(lines)))
    # From the back, so that an insertion does not move the positions before it.
    result = list(lines)
    for position, text in sorted(zip(positions, inserted, strict=True), reverse=True):
        result.insert(position, text)
    return result
