"""Searches the largest effective length of a kind of questions, with as few questions as the decisions need.

First the shortest length is asked, which gives the score that the others are compared with. Then the claimed length is
asked, and if it is not effective, the middle of what is still possible, as in a bisection. At each length questions are
asked until a sequential test decides. The scores are assumed not to rise with the length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from helm_longctx.results.certificates.answers import Answered, Reply
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.sequential import Decision, count_until_decision, decide, sequential_interval

LOWEST_THRESHOLD = 0.05
"""No threshold is lower, because scores of 0 could not be told from it."""

NO_TEXT = 10
"""Number of questions without a text, for the floor of a kind."""


@dataclass(frozen=True)
class Design:
    """What a certificate decides, and how certain it has to be.

    Args:
        claim: the claimed length in tokens.
        shortest: the length whose score the others are compared with.
        kinds: the names of the kinds.
        share: share of the score at the shortest length, above the floor, that an effective length keeps.
        error: largest probability that any statement about the effective lengths is wrong.
        first: number of questions of each kind at the shortest length.
        most: largest number of questions of a kind at the claim.
        seed: the first seed of the texts.
    """

    claim: int
    shortest: int
    kinds: tuple[str, ...]
    share: float = 0.7
    error: float = 0.05
    first: int = 30
    most: int = 60
    seed: int = 0

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that can be asked: the shortest, its doubles below the claim, and the claim."""
        doubles = range(math.ceil(math.log2(self.claim / self.shortest)))
        return (*(self.shortest << power for power in doubles), self.claim)

    @property
    def most_lengths(self) -> int:
        """Largest number of lengths at which a kind is tested, besides the shortest: the claim and a bisection."""
        return 1 + math.ceil(math.log2(len(self.lengths) - 1))

    def error_at(self, length: int) -> float:
        """Return the error of the test of a kind at a length.

        The claim has half of the kind's error, because it is always tested and its prompts cost most. The other lengths
        of a bisection share the other half.
        """
        of_kind = self.error / len(self.kinds)
        return of_kind / 2 if length == self.claim else of_kind / 2 / max(self.most_lengths - 1, 1)

    def most_at(self, length: int) -> int:
        """Return the largest number of questions of a kind at a length.

        Below the claim it is twice as large, because the questions there cost at most half.
        """
        return self.most if length == self.claim else 2 * self.most


@dataclass
class Cell:
    """The answers of one kind at one length.

    Args:
        threshold: the score above which the length is effective.
        error: the error of the test.
        most: largest number of questions.
    """

    length: int
    threshold: float
    error: float
    most: int
    answered: list[Answered] = field(default_factory=list)

    @property
    def replies(self) -> list[Reply]:
        """All replies, in the order in which they were asked for."""
        return [reply for each in self.answered for reply in each.replies]

    @property
    def scores(self) -> list[float]:
        """The scores of the answers."""
        return [reply.score for reply in self.replies if reply.score is not None]

    @property
    def is_refused(self) -> bool:
        """Whether the server refused a prompt because of its length."""
        return any(reply.refused for reply in self.replies)

    @property
    def decision(self) -> Decision:
        """Whether the length is effective. A length that the server refuses is not."""
        return Decision.BELOW if self.is_refused else decide(self.scores, self.threshold, self.error)

    @property
    def interval(self) -> Interval:
        """The mean score, with its interval at all sample sizes together."""
        return sequential_interval(self.scores)

    @property
    def wanted(self) -> int:
        """Number of questions to ask next; 0 if the length is decided or has its largest number."""
        left = self.most - len(self.replies)
        if left <= 0 or self.decision is not Decision.OPEN:
            return 0
        return count_until_decision(self.scores, self.threshold, left, self.error)


class KindSearch:
    """The search for one kind.

    Args:
        design: the certificate's design.
        kind: the kind's name.

    Attributes:
        base: the answers at the shortest length; its threshold decides whether the kind can be measured at all.
        without_text: the replies without a text.
        cells: the answers at other lengths, in the order in which they were tested.
        threshold: the score above which a length is effective; NaN before the shortest length was asked.
    """

    def __init__(self, design: Design, kind: str):
        self.design, self.kind = design, kind
        self.base = Cell(design.shortest, LOWEST_THRESHOLD, design.error / len(design.kinds), design.first)
        self.without_text: list[Answered] = []
        self.cells: dict[int, Cell] = {}
        self.threshold = math.nan

    def wanted(self) -> list[tuple[int, int, bool]]:
        """Return what to ask next, as (length, number of questions, whether with texts); empty at the end."""
        if not self.base.answered:
            return [(self.design.shortest, NO_TEXT, False), (self.design.shortest, self.design.first, True)]
        if not self.is_measurable:
            return []
        length = self._next_length()
        if length is None:
            return []
        return [(length, self.cells.setdefault(length, self._make_cell(length)).wanted, True)]

    def add(self, answered: Answered) -> None:
        """Take the answers to what was asked."""
        block = answered.block
        if not block.has_text:
            self.without_text.append(answered)
        elif block.length == self.design.shortest:
            self.base.answered.append(answered)
            self._set_threshold()
        else:
            self.cells.setdefault(block.length, self._make_cell(block.length)).answered.append(answered)

    @property
    def floor(self) -> float:
        """The score that needs no text: of the model without texts, or of a constant answer if that is higher."""
        guesses = [reply.score for each in self.without_text for reply in each.replies if reply.score is not None]
        return max(_mean(guesses), self.baselines.get("null", 0.0))

    @property
    def baselines(self) -> dict[str, float]:
        """The mean scores of the baselines at the shortest length, by name."""
        floors = [reply.floors for reply in self.base.replies if reply.floors]
        return {name: fmean(each[name] for each in floors) for name in (floors[0] if floors else ())}

    @property
    def is_measurable(self) -> bool:
        """Whether the score at the shortest length is above the floor."""
        floor = min(max(self.floor, LOWEST_THRESHOLD), 1 - LOWEST_THRESHOLD)
        return decide(self.base.scores, floor, self.base.error) is Decision.ABOVE

    @property
    def effective(self) -> int | None:
        """The largest length that is effective; None if the kind cannot be measured."""
        if not self.is_measurable:
            return None
        return max((length for length, cell in self._all() if cell.decision is Decision.ABOVE), default=None)

    @property
    def not_effective(self) -> int | None:
        """The smallest length that is not effective; None if no length was found not to be."""
        return min((length for length, cell in self.cells.items() if cell.decision is Decision.BELOW), default=None)

    @property
    def undecided(self) -> list[int]:
        """The lengths that were tested without a decision, and those whose test never started."""
        if not self.is_measurable:
            return []
        untested = [self.design.claim] if self.design.claim not in self.cells else []
        return untested + [length for length, cell in self.cells.items() if cell.decision is Decision.OPEN]

    def _all(self) -> list[tuple[int, Cell]]:
        return [(self.design.shortest, self.base), *self.cells.items()]

    def _make_cell(self, length: int) -> Cell:
        return Cell(length, self.threshold, self.design.error_at(length), self.design.most_at(length))

    def _set_threshold(self) -> None:
        floor = self.floor
        threshold = floor + self.design.share * (_mean(self.base.scores) - floor)
        self.threshold = min(max(threshold, LOWEST_THRESHOLD), 1 - LOWEST_THRESHOLD)

    def _next_length(self) -> int | None:
        """Return the length that is being tested, or else the claim, and then the middle of what is still possible."""
        for length, cell in self.cells.items():
            if cell.wanted:
                return length
        lengths, claim = self.design.lengths, self.design.claim
        if claim not in self.cells:
            return claim
        effective = [each for each, cell in self._all() if cell.decision is Decision.ABOVE]
        others = [each for each in self.cells if each not in effective]
        low, high = lengths.index(max(effective)), lengths.index(min(others, default=claim))
        return lengths[(low + high) // 2] if high - low > 1 else None


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
