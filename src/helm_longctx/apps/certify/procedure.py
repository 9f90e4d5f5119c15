"""Asks until all decisions of a certificate are made, says what the answers show, and writes it as JSON data."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from helm_longctx.apps.certify.answers import PLACES, Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.search import (
    Design,
    KindAnswers,
    KindCell,
    LengthTest,
    Search,
)
from helm_longctx.errors import InputError
from helm_longctx.results.statistics.sequential import (
    ThresholdDecision,
    count_until_decision,
    decide,
)
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sample import is_cut

_HALF = 0.5
"""A part of the text counts as used if more than half of the answers have what stands there."""

_START = "at_start"
_MIDDLE = "at_middle"
_END = "at_end"

_ENDS = (_START, _MIDDLE, _END)
"""The parts that findings are about. They are asked until they are decided."""


@dataclass(frozen=True)
class _Finding:
    """Something that a user of the endpoint should know.

    Args:
        name: a word for programs.
        text: a sentence for people.
    """

    name: str
    text: str


@dataclass(frozen=True)
class _Place:
    """How often answers have what stands in a part of the text.

    Args:
        place: one of `PLACES`.
        shares: the share of the answers that have it, by length.
        decision: whether more than half of the pooled answers have it.
    """

    place: str
    shares: Mapping[int, float]
    decision: ThresholdDecision


class _Diagnosis:
    """The parts of long texts that the answers use, from the kind that asks for something in several parts.

    The answers at all lengths that are not effective are pooled, or those at the claim if all lengths are effective.

    Args:
        search: the search.
        kind: the answers of that kind.
    """

    def __init__(self, search: Search, kind: KindAnswers):
        self._search = search
        self._kind = kind
        self._error = search.design.error / len(PLACES)

    @property
    def cells(self) -> list[KindCell]:
        """The cells whose answers are pooled, the shortest length last."""
        lengths = [
            length for length in self._search.tests if not self._is_refused(length)
        ]
        lost = [length for length in lengths if not self._is_effective(length)]
        chosen = lost or lengths[:1]
        cells = []
        for length in sorted(chosen, reverse=True):
            cells.append(self._kind.cell(length))
        return cells

    def _is_refused(self, length: int) -> bool:
        cells = []
        for kind in self._search.measurable_kinds:
            cells.append(kind.cells.get(length))
        return any(cell.is_refused for cell in cells if cell)

    def _is_effective(self, length: int) -> bool:
        return self._search.tests[length].decision is ThresholdDecision.ABOVE

    @property
    def places(self) -> list[_Place]:
        """How often answers have each part. There are none without answers."""
        rows = self._rows()
        if not rows:
            return []
        places = []
        cells = sorted(
            (self._kind.base, *self._kind.cells.values()), key=lambda cell: cell.length
        )
        for number, name in enumerate(PLACES):
            shares = {}
            for cell in cells:
                values = []
                for reply in cell.replies:
                    if reply.places:
                        values.append(reply.places[number])
                if values:
                    shares[cell.length] = fmean(values)
            decision = decide([row[number] for row in rows], _HALF, self._error)
            places.append(_Place(name, shares, decision))
        return places

    def next_blocks(self) -> list[AskedBlock]:
        """Return what to ask next: at the shortest of the lengths that are not effective, because it costs least."""
        rows = self._rows()
        cells = self.cells
        length = cells[-1].length if cells else 0
        if (
            not cells
            or self._is_effective(length)
            or self._search.tests[length].next_count
        ):
            return []
        start = len(cells[-1].replies)
        left = min(self._search.most_at(length), self._search.design.most - start)
        count = 0
        for name in _ENDS:
            column = [row[PLACES.index(name)] for row in rows]
            needed = count_until_decision(column, _HALF, max(left, 1), self._error)
            count = max(count, needed)
        blocks = []
        for number in range(start, start + max(0, min(count, left))):
            blocks.append(self._kind.block(length, self._kind.question(number)))
        return blocks

    def _rows(self) -> list[tuple[float, ...]]:
        rows = []
        for cell in self.cells:
            for reply in cell.replies:
                if reply.places:
                    rows.append(reply.places)
        return rows


def _list_findings(
    searches: Sequence[KindAnswers],
    diagnosis: _Diagnosis | None,
) -> list[_Finding]:
    """Return what the answers show besides the effective lengths."""
    refusing = []
    failing = []
    for search in searches:
        refusing += [length for length, cell in search.cells.items() if cell.is_refused]
        failing += [
            length for length, cell in search.cells.items() if cell.failure_count
        ]
    findings = []
    if refusing:
        text = f"The server refuses prompts of {length_label(min(refusing))}."
        findings.append(_Finding("refuses", text))
    if failing:
        length = min(failing)
        cells = []
        for search in searches:
            if length in search.cells:
                cells.append(search.cells[length])
        failed = sum(cell.failure_count for cell in cells)
        asked = sum(len(cell.replies) for cell in cells)
        text = (
            f"{failed} of {asked} requests of {length_label(length)} have no answer. They count as"
            " wrong for an effective length, and as right for one that is not."
        )
        findings.append(_Finding("fails", text))
    shortfalls = []
    for search in searches:
        usual = _token_ratio(search.base.replies)
        for length, cell in search.cells.items():
            ratio = _token_ratio(cell.replies)
            if usual and ratio and is_cut(ratio, 1.0, usual):
                counted = median(
                    reply.counted for reply in cell.replies if reply.counted
                )
                shortfalls.append((length, int(counted)))
    if shortfalls:
        length, kept = min(shortfalls)
        what = f"of prompts of {length_label(length)} it counts only {kept:,} tokens"
        text = f"The server cuts prompts without an error: {what}."
        findings.append(_Finding("cuts", text))
    part = None
    if diagnosis:
        decisions = {}
        for share in diagnosis.places:
            decisions[share.place] = share.decision
        part = _describe_parts(decisions)
    if diagnosis and part:
        name, sentence = part
        lengths = []
        for cell in reversed(diagnosis.cells):
            lengths.append(length_label(cell.length))
        findings.append(
            _Finding(name, f"{sentence} (prompts of {', '.join(lengths)}).")
        )
    return findings


def _token_ratio(replies: Sequence[KeptReply]) -> float | None:
    """Return the median ratio of the server's tokens to ours, or None if the server reports none."""
    ratios = []
    for reply in replies:
        if reply.counted and reply.sent:
            ratios.append(reply.counted / reply.sent)
    return median(ratios) if ratios else None


def _describe_parts(
    decisions: Mapping[str, ThresholdDecision],
) -> tuple[str, str] | None:
    """Return a word and a sentence about the parts that are not used, or None if all are, or if it is open."""
    lost = ThresholdDecision.BELOW
    used = ThresholdDecision.ABOVE
    ends = (decisions.get(_START), decisions.get(_END))
    if ends == (lost, used):
        return (
            "end_only",
            "Only the end of the text is used: what stands at its start is not found",
        )
    if ends == (used, lost):
        return (
            "start_only",
            "Only the start of the text is used: what stands at its end is not found",
        )
    if ends == (used, used) and decisions.get(_MIDDLE) is lost:
        return (
            "middle_lost",
            "The middle of the text is not used: what stands at both ends is found",
        )
    if ends == (lost, lost):
        return (
            "nothing_used",
            "Nothing of the text is used: neither its start nor its end is found",
        )
    return None


_FORMAT = 2
"""Version of the JSON data."""


def _all_blocks(search: KindAnswers) -> list[Answered]:
    """Return all blocks of a kind: without texts, at the shortest length, and at the others."""
    blocks = [*search.without_text]
    for cell in (search.base, *search.cells.values()):
        blocks += cell.answered
    return blocks


def _record_test(test: LengthTest) -> dict[str, Any]:
    loss = test.interval
    return {
        "length": test.length,
        "n": loss.n,
        "loss": loss.mean if loss.n else None,
        "low": loss.low if loss.n > 1 else None,
        "high": loss.high if loss.n > 1 else None,
        "decision": test.decision.value,
        "asked": test.asked,
        "failed": test.failed,
        "has_too_many_failures": test.has_too_many_failures,
    }


def _record_kind(kind: KindAnswers, is_measured: bool) -> dict[str, Any]:
    cells = sorted((kind.base, *kind.cells.values()), key=lambda cell: cell.length)
    return {
        "name": kind.kind,
        "is_measurable": is_measured,
        "effective": kind.effective,
        "not_effective": kind.not_effective,
        "pairing": kind.pairing if is_measured else None,
        "least": kind.least,
        "floor": kind.floor,
        "baselines": kind.baselines,
        "cells": [_record_cell(cell) for cell in cells],
    }


def _record_cell(cell: KindCell) -> dict[str, Any]:
    interval = cell.interval
    counted = []
    for reply in cell.replies:
        if reply.counted:
            counted.append(reply.counted)
    dollars = []
    for reply in cell.replies:
        if not reply.failure:
            dollars.append(reply.dollars)
    dollars_per_request = None
    if dollars and None not in dollars:
        dollars_per_request = fmean(dollar for dollar in dollars if dollar is not None)
    return {
        "length": cell.length,
        "n": interval.n,
        "mean": interval.mean if interval.n else None,
        "low": interval.low,
        "high": interval.high,
        "decision": cell.decision.value,
        "is_refused": cell.is_refused,
        "threshold": cell.highest,
        "lost_below": cell.lowest,
        "failures": dict(
            Counter(reply.failure for reply in cell.replies if reply.failure)
        ),
        "cut_answers": sum(reply.is_cut for reply in cell.replies),
        "sent_tokens": median(reply.sent for reply in cell.replies)
        if cell.replies
        else None,
        "counted_tokens": median(counted) if counted else None,
        "dollars_per_request": dollars_per_request,
    }


Ask = Callable[[Sequence[AskedBlock]], list[Answered]]
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
class CertifyOutcome:
    """What was asked, and the result.

    Args:
        diagnosis: the parts of long texts that the answers use. None if no kind asks for several parts.
        stop: why it ended before all decisions were made. Empty if it did not.
    """

    search: Search
    diagnosis: _Diagnosis | None
    stop: str = ""

    @property
    def findings(self) -> list[_Finding]:
        """What the answers show besides the effective lengths."""
        return _list_findings(list(self.search.kinds.values()), self.diagnosis)

    @property
    def holds(self) -> bool | None:
        """Whether the kinds that can be measured lose less than allowed at the claim. None if that is open."""
        decision = self.search.decision
        if decision is ThresholdDecision.OPEN:
            return None
        return decision is ThresholdDecision.ABOVE

    def record(self) -> dict[str, Any]:
        """Return the certificate as JSON data, without what depends on the machine."""
        design = self.search.design
        searches = list(self.search.kinds.values())
        blocks: list[Answered] = []
        cells: list[KindCell] = []
        for search in searches:
            blocks += _all_blocks(search)
            cells += [search.base, *search.cells.values()]
        replies: list[KeptReply] = []
        answers = []
        for answered in blocks:
            replies += answered.replies
            own_replies = []
            for reply in answered.replies:
                own_replies.append(reply.to_json())
            answers.append({**asdict(answered.block), "replies": own_replies})
        dollars = []
        for reply in replies:
            if not reply.failure:
                dollars.append(reply.dollars)
        ratios = []
        for reply in replies:
            if reply.counted and reply.tokenized:
                ratios.append(reply.counted / reply.tokenized)
        answered_replies = [reply for reply in replies if not reply.failure]
        measured = self.search.measurable_kinds
        all_kinds = all(
            search in measured and search.effective == design.claim
            for search in searches
        )
        parts = []
        for part in self.diagnosis.places if self.diagnosis else ():
            parts.append({**asdict(part), "decision": part.decision.value})
        total = None
        if None not in dollars:
            total = sum(dollar for dollar in dollars if dollar is not None)
        lines = sorted(answers, key=lambda block: block["seed"])
        return {
            "format": _FORMAT,
            "claim": design.claim,
            "holds": self.holds,
            "accepted": max(
                (cell.length for cell in cells if cell.scores), default=None
            ),
            "findings": [asdict(finding) for finding in self.findings],
            "stands_on": [search.kind for search in measured],
            "all_kinds": all_kinds,
            "effective": self.search.effective,
            "not_effective": self.search.not_effective,
            "lengths": [_record_test(test) for test in self.search.tests.values()],
            "kinds": [_record_kind(search, search in measured) for search in searches],
            "places": parts,
            "tokens": {
                "reported": any(reply.counted for reply in replies),
                "by_tokenizer": median(ratios) if ratios else None,
                "by_estimate": _token_ratio(answered_replies),
            },
            "requests": len(replies),
            "prompt_tokens": sum(
                reply.counted or reply.sent for reply in answered_replies
            ),
            "dollars": total,
            "cut_answers": sum(reply.is_cut for reply in replies),
            "models": dict(Counter(reply.model for reply in replies if reply.model)),
            "design": {**asdict(design), "lengths": design.lengths},
            "answers": answers,
            "stop": self.stop,
            # The questions and answers, in the order of the seeds.
            "sha256": hashlib.sha256(
                json.dumps(lines, sort_keys=True).encode()
            ).hexdigest(),
        }


def run(design: Design, ask: Ask) -> CertifyOutcome:
    """Ask until everything is decided."""
    search = Search(design)
    stop = ""
    while not stop:
        diagnosis = _diagnose(search)
        # The search has ended when the diagnosis asks.
        blocks = search.next_blocks() or (diagnosis.next_blocks() if diagnosis else [])
        if not blocks:
            break
        try:
            answered: Sequence[Answered] = ask(blocks)
        except LimitReachedError as error:
            answered = error.answered
            stop = str(error)
        for block in answered:
            search.add(block)
    return CertifyOutcome(
        search=search,
        diagnosis=_diagnose(search),
        stop=stop,
    )


def _diagnose(search: Search) -> _Diagnosis | None:
    """Return the diagnosis by the kind that asks for something in several parts."""
    for kind in search.measurable_kinds if search.tests else ():
        if any(reply.places for reply in kind.base.replies):
            return _Diagnosis(search, kind)
    return None
