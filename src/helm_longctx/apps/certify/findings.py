"""Finds what a server does with long prompts besides answering them: refusals, cuts, and parts that it does not use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from helm_longctx.apps.certify.answers import PLACES, Block, Reply
from helm_longctx.apps.certify.search import Cell, KindAnswers, Search
from helm_longctx.results.statistics.sequential import Decision, count_until_decision, decide
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sample import is_cut

HALF = 0.5
"""A part of the text counts as used if what stands there is found in more than half of the answers."""

START, MIDDLE, END = "at_start", "at_middle", "at_end"

ENDS = (START, MIDDLE, END)
"""The places that findings are about. They are asked until they are decided."""


@dataclass(frozen=True)
class Finding:
    """Something that a user of the endpoint should know.

    Args:
        name: a word for programs.
        text: a sentence for people.
    """

    name: str
    text: str


@dataclass(frozen=True)
class Place:
    """How often something at a place of the text was found.

    Args:
        place: one of `PLACES`.
        shares: the share of the answers in which it was found, by length.
        decision: whether it was found in more than half of the pooled answers.
    """

    place: str
    shares: Mapping[int, float]
    decision: Decision


class Diagnosis:
    """The parts of long texts that the answers use, from the kind that asks for something at several places.

    The answers at all lengths that are not effective are pooled, or those at the claim if all lengths are effective.

    Args:
        search: the search.
        kind: the answers of that kind.
    """

    def __init__(self, search: Search, kind: KindAnswers):
        self._search, self._kind = search, kind
        self._error = search.design.error / len(PLACES)

    @property
    def cells(self) -> list[Cell]:
        """The cells whose answers are pooled, the shortest length last."""
        read = [length for length in self._search.tests if not self._is_refused(length)]
        lost = [length for length in read if not self._is_effective(length)]
        return [self._kind.cell(length) for length in sorted(lost or read[:1], reverse=True)]

    def _is_effective(self, length: int) -> bool:
        return self._search.tests[length].decision is Decision.ABOVE

    def _is_refused(self, length: int) -> bool:
        return any(length in each.cells and each.cells[length].is_refused for each in self._search.measured)

    @property
    def places(self) -> list[Place]:
        """How often each place was found; empty if there are no answers."""
        rows = self._rows()
        columns = [[row[number] for row in rows] for number in range(len(PLACES))]
        return [
            Place(name, self._shares(number), decide(columns[number], HALF, self._error))
            for number, name in enumerate(PLACES)
            if rows
        ]

    def next_blocks(self) -> list[Block]:
        """Return what to ask next: at the shortest of the lengths that are not effective, which costs least."""
        rows, cells = self._rows(), self.cells
        length = cells[-1].length if cells else 0
        if not cells or self._is_effective(length) or self._search.tests[length].next_count:
            return []
        start = len(cells[-1].replies)
        left = min(self._search.most_at(length), self._search.design.most - start)
        columns = [[row[PLACES.index(name)] for row in rows] for name in ENDS]
        count = max((count_until_decision(each, HALF, max(left, 1), self._error) for each in columns), default=0)
        numbers = range(start, start + max(0, min(count, left)))
        return [Block(self._kind.kind, length, self._kind.question(number), 1) for number in numbers]

    def _rows(self) -> list[tuple[float, ...]]:
        return [reply.places for cell in self.cells for reply in cell.replies if reply.places]

    def _shares(self, number: int) -> dict[int, float]:
        """Return the share of the answers that found what is at a place, by length."""
        cells = sorted((self._kind.base, *self._kind.cells.values()), key=lambda cell: cell.length)
        found = {cell.length: [reply.places[number] for reply in cell.replies if reply.places] for cell in cells}
        return {length: fmean(values) for length, values in found.items() if values}


def list_findings(searches: Sequence[KindAnswers], diagnosis: Diagnosis | None) -> list[Finding]:
    """Return what the answers show besides the effective lengths."""
    refused = min((length for each in searches for length, cell in each.cells.items() if cell.is_refused), default=0)
    findings = []
    if refused:
        text = f"The server refuses prompts of {length_label(refused)}."
        findings.append(Finding("refuses", text))
    if shortfall := find_shortfall(searches):
        length, kept = shortfall
        what = f"of prompts of {length_label(length)} it counts only {kept:,} tokens"
        text = f"The server cuts prompts without an error: {what}."
        findings.append(Finding("cuts", text))
    places = {place.place: place.decision for place in diagnosis.places} if diagnosis else {}
    if part := _describe_parts(places):
        lengths = [length_label(cell.length) for cell in reversed(diagnosis.cells)] if diagnosis else []
        findings.append(Finding(part[0], f"{part[1]} (prompts of {', '.join(lengths)})."))
    return findings


def find_shortfall(searches: Sequence[KindAnswers]) -> tuple[int, int] | None:
    """Return the shortest length at which the server counts fewer tokens than it was sent, and how many it counts."""
    found = []
    for search in searches:
        usual = token_ratio(search.base.replies)
        for length, cell in search.cells.items():
            ratio = token_ratio(cell.replies)
            if usual and ratio and is_cut(ratio, 1.0, usual):
                counted = median(reply.counted for reply in cell.replies if reply.counted)
                found.append((length, int(counted)))
    return min(found, default=None)


def token_ratio(replies: Sequence[Reply]) -> float | None:
    """Return the median ratio of the server's tokens to ours; None if the server reports none."""
    ratios = [reply.counted / reply.sent for reply in replies if reply.counted and reply.sent]
    return median(ratios) if ratios else None


def largest_accepted(searches: Sequence[KindAnswers]) -> int | None:
    """Return the largest length at which the server has answered; None if it never has."""
    cells = [cell for search in searches for cell in (search.base, *search.cells.values())]
    return max((cell.length for cell in cells if cell.scores), default=None)


def failure_counts(cell: Cell) -> dict[str, int]:
    """Return how many questions have no answer, by the reason."""
    reasons = [reply.failure for reply in cell.replies if reply.failure]
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def mean_dollars(replies: Sequence[Reply]) -> float | None:
    """Return the mean price of requests; None if a price is not known."""
    dollars = [reply.dollars for reply in replies if not reply.failure]
    return fmean(each for each in dollars if each is not None) if dollars and None not in dollars else None


def _describe_parts(places: Mapping[str, Decision]) -> tuple[str, str] | None:
    """Return a word and a sentence about the parts that are not used; None if all are, or if it is open."""
    lost, found = Decision.BELOW, Decision.ABOVE
    ends = places.get(START), places.get(END)
    if ends == (lost, found):
        return "end_only", "Only the end of the text is used: what stands at its start is not found"
    if ends == (found, lost):
        return "start_only", "Only the start of the text is used: what stands at its end is not found"
    if ends == (found, found) and places.get(MIDDLE) is lost:
        return "middle_lost", "The middle of the text is not used: what stands at both ends is found"
    if ends == (lost, lost):
        return "nothing_used", "Nothing of the text is used: neither its start nor its end is found"
    return None
