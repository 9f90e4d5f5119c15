"""Asks block after block until all decisions of a certificate are made, or the money is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.results.certificates.answers import Answered, Block
from helm_longctx.results.certificates.findings import Diagnosis, Finding, list_findings
from helm_longctx.results.certificates.record import hash_record, record_certificate
from helm_longctx.results.certificates.search import Design, KindSearch

Ask = Callable[[Sequence[Block]], list[Answered]]
"""(blocks) → the same blocks with their replies."""


class LimitReachedError(InputError):
    """The limit on the cost is reached.

    Args:
        answered: the blocks with the replies that have arrived.
    """

    def __init__(self, message: str, answered: Sequence[Answered]):
        super().__init__(message)
        self.answered = answered


@dataclass(frozen=True)
class Outcome:
    """What was asked and found.

    Args:
        searches: the search of each kind.
        diagnosis: the parts of long texts that the answers use; None if no kind asks for several places.
        stop: why it ended before all decisions were made; empty if it did not.
    """

    design: Design
    searches: Sequence[KindSearch]
    diagnosis: Diagnosis | None
    stop: str = ""

    @property
    def findings(self) -> list[Finding]:
        """What the answers show besides the effective lengths."""
        return list_findings(self.design, self.searches, self.diagnosis)

    @property
    def holds(self) -> bool | None:
        """Whether all kinds that can be measured are effective at the claim; None if that is open."""
        measured = [search for search in self.searches if search.is_measurable]
        if any(search.not_effective is not None for search in measured):
            return False
        return True if measured and all(each.effective == self.design.claim for each in measured) else None

    def record(self) -> dict[str, Any]:
        """Return the certificate as JSON data, without what depends on the machine."""
        record = record_certificate(self.design, self.searches, self.diagnosis, self.holds)
        return {**record, "stop": self.stop, "sha256": hash_record(record)}


def run(design: Design, ask: Ask) -> Outcome:
    """Ask until everything is decided."""
    searches = [KindSearch(design, kind) for kind in design.kinds]
    by_kind = {search.kind: search for search in searches}
    seeds = iter(range(design.seed, design.seed + 1_000_000))
    stop, diagnosis = "", None
    while not stop:
        blocks = list(_next_blocks(searches, diagnosis, seeds))
        if not blocks and diagnosis is None and (placed := _placed(searches)):
            diagnosis = Diagnosis(design, placed)
        elif not blocks:
            break
        else:
            answered, stop = _ask(ask, blocks)
            for each in answered:
                by_kind[each.block.kind].add(each)
    return Outcome(design, searches, diagnosis or _diagnose(design, searches), stop)


def _ask(ask: Ask, blocks: Sequence[Block]) -> tuple[Sequence[Answered], str]:
    try:
        return ask(blocks), ""
    except LimitReachedError as error:
        return error.answered, str(error)


def _next_blocks(searches: Sequence[KindSearch], diagnosis: Diagnosis | None, seeds: Iterator[int]) -> Iterator[Block]:
    """Yield what all kinds want to ask next, so that their requests are sent together."""
    for search in searches:
        # The search of this kind has ended when the diagnosis begins.
        wanted = search.wanted() or (diagnosis.wanted() if diagnosis and search is _placed(searches) else [])
        for length, count, has_text in wanted:
            yield Block(search.kind, length, next(seeds), count, has_text)


def _placed(searches: Sequence[KindSearch]) -> KindSearch | None:
    """Return the kind that asks for something at several places."""
    return next((each for each in searches if any(reply.places for reply in each.base.replies)), None)


def _diagnose(design: Design, searches: Sequence[KindSearch]) -> Diagnosis | None:
    placed = _placed(searches)
    return Diagnosis(design, placed) if placed else None
