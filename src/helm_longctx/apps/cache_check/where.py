"""Narrows a difference down to the shortest length, the shortest shared beginning and the depths of what is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from helm_longctx.apps.cache_check.boundary import Boundary, find_boundary
from helm_longctx.apps.cache_check.prompts import (
    DEPTHS,
    PLACES,
    RegisterQuestion,
    lines_for,
)
from helm_longctx.apps.cache_check.states import BEGINNING, COLD, CONTROL, StateReply
from helm_longctx.apps.cache_check.verdict import StateCell, judge
from helm_longctx.documents.numbers import format_share
from helm_longctx.results.statistics.level import SIGNIFICANCE

_SHORTEST = 256
"""Tokens of the shortest prompt that is tried."""

_CLOSE = 1.2
"""The search ends if the longest prompt without a difference and the shortest with one have less than this ratio."""

QUESTIONS = 12
"""Questions at each step. A difference in all of them has a p of 0.0005."""

SEEDS = 10**6
"""What is added to the first seed of a check, so that a search has questions of its own."""

_LOST = 0.5
"""Share of the values at a depth that must be lost for the depth to be named."""

_AskMore = Callable[[int, Sequence[str], bool], list[StateReply]]
"""(length, states, whether the keys are spread) → the replies to `QUESTIONS` questions in these states."""

_AskShared = Callable[[int, int, int], list[StateReply]]
"""(length, lines, how often they were tried) → the replies to `boundary.QUESTIONS` questions whose prompts share so
many lines with what was sent before them."""


class Where(NamedTuple):
    """Where a difference is.

    Args:
        cell: the shortest length at which the state changes the answers.
        without: the longest shorter length at which no difference was seen. 0 if there is one at the shortest.
        depths: [first, last] depth of the values that are lost, 0 to 1. None if they have no common depth.
        at_border: where around the end of the shared beginning values are lost.
        boundary: from which shared beginning on answers differ. None if that is no question, or not known.
    """

    cell: StateCell
    without: int = 0
    depths: tuple[float, float] | None = None
    at_border: tuple[str, ...] = ()
    boundary: Boundary | None = None

    @property
    def text(self) -> str:
        """The result in sentences."""
        if self.without:
            shorter = f"none was seen at {self.without}"
        else:
            shorter = "shorter ones were not tried"
        parts = [
            f"{self.cell.name}: answers differ from about {self.cell.length} tokens on; {shorter}."
        ]
        if self.depths:
            first, last = (format_share(depth) for depth in self.depths)
            parts.append(f"Values between {first} and {last} of the prompt are lost.")
        elif self.at_border:
            parts.append(
                f"Values are lost {' and '.join(self.at_border)} of the shared beginning."
            )
        else:
            parts.append("What is lost has no common depth.")
        if self.boundary:
            parts.append(self.boundary.text)
        return " ".join(parts)


def find_where(
    cells: Sequence[StateCell],
    worst: StateCell,
    replies: Sequence[StateReply],
    ask: _AskMore,
    ask_shared: _AskShared,
    tie: float | None = None,
) -> Where:
    """Narrow down a difference in a state.

    Args:
        cells: the cells of the check.
        worst: one that differs.
        replies: the answers of the check.
        ask, ask_shared: ask more questions about texts of the same kind.
        tie: see `judge`.
    """
    state = worst.state
    paid = {cell.length: list(replies) for cell in cells}
    own = [cell for cell in cells if cell.name == worst.name]
    worst = min((cell for cell in own if cell.differs), key=lambda cell: cell.length)
    without = max(
        (cell.length for cell in own if cell.length < worst.length), default=0
    )
    while worst.length > max(_CLOSE * without, _SHORTEST):
        middle = max(
            round((max(without, _SHORTEST / 2) * worst.length) ** 0.5), _SHORTEST
        )
        if middle >= worst.length:
            break
        paid[middle] = ask(middle, (COLD, CONTROL, state), False)
        (cell,) = judge(paid[middle], tie)
        # One test, because the steps before have shown that there is a difference.
        if cell.p_value < SIGNIFICANCE:
            worst = cell
        elif middle == _SHORTEST:
            without = middle
            break
        else:
            without = middle
    border = []
    if state == BEGINNING:
        for name, lost in zip(PLACES, worst.lost, strict=True):
            if lost >= _LOST and "border" in name:
                border.append(name)
    depths = None
    if not border:
        depths = _find_depths(worst, ask(worst.length, (CONTROL, state), True))
    boundary = None
    if state == BEGINNING:
        group = (worst.length, worst.kind)
        kept = []
        for reply in paid[worst.length]:
            if (reply.length, reply.kind) == group:
                kept.append(reply)
        boundary = find_boundary(kept, partial(ask_shared, worst.length), tie)
    at_border = tuple(name.removesuffix(" the border") + " the end" for name in border)
    return Where(
        cell=worst,
        without=without,
        depths=depths,
        at_border=at_border,
        boundary=boundary,
    )


def _find_depths(
    cell: StateCell,
    replies: Sequence[StateReply],
) -> tuple[float, float] | None:
    """Return the first and the last depth at which most values are lost in a state that answers have without it."""
    answers = {}
    for reply in replies:
        if not reply.failure:
            answers[(reply.state, reply.seed)] = reply
    size = lines_for(cell.length, cell.kind)
    lost: dict[float, list[bool]] = defaultdict(list)
    for name, seed in answers:
        if name != cell.state or (CONTROL, seed) not in answers:
            continue
        lines = RegisterQuestion(seed, size, is_spread=True).asked_lines
        before = answers[CONTROL, seed].hits
        after = answers[cell.state, seed].hits
        for line, was_hit, is_hit in zip(lines, before, after, strict=True):
            depth = round((line + 0.5) / size * DEPTHS - 0.5) / DEPTHS
            lost[depth].append(was_hit and not is_hit)
    depths = sorted(
        depth for depth, values in lost.items() if sum(values) >= _LOST * len(values)
    )
    if depths:
        return (depths[0], depths[-1] + 1 / DEPTHS)
    return None
