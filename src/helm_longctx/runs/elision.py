"""Long texts for the screen: head, tail, and the evidence in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import regex

LIMIT = 8_000
"""In characters: what is not longer is shown whole, and nothing shown is longer."""

HEAD = TAIL = 1_500
EVIDENCE = 300
AROUND = 150
PLACES = 5

_CLUSTER = regex.compile(r"\X")
# How far from a cut its grapheme clusters are looked at: Unicode's stream-safe format allows 30 marks on a letter.
_CLUSTER_REACH = 32
# In UTF-8 bytes: two Chinese characters, one long word; anything shorter is everywhere.
_TELLING = 4
# In characters: less is shown rather than left out.
_WORTH_A_MARK = 100

Span = tuple[int, int]


def elide(text: str, evidence: Sequence[str] = ()) -> str:
    """A text that a page can show: its head, its tail, and what stands around each piece of evidence, in place.

    Each part left out is replaced by a mark that says how many characters it had and where, in percent of the text.
    Evidence is marked with its depth. A text of at most `LIMIT` characters is given back as it is, so what was elided
    once passes through.

    Args:
        evidence: answers or passages, the telling ones first; at most `PLACES` of them are shown.
    """
    if len(text) <= LIMIT:
        return text
    found = _found(text, evidence)
    around = [(start - AROUND, end + AROUND) for start, end in found]
    shown = _merged([(0, HEAD), *around, (len(text) - TAIL, len(text))])
    parts, done = [], 0
    for start, end in ((_edge(text, start), _edge(text, end)) for start, end in shown):
        if start > done:
            parts.append(_mark(done, start, len(text)))
        parts.append("".join(_with_marks(text, start, end, found)))
        done = end
    return "".join(parts)


def evidence_of(references: Iterable[str], record: Mapping[str, Any]) -> list[str]:
    """What an instance knows of its evidence: its answers, and the passages that are the most relevant.

    Args:
        record: the instance's `extra_data["record"]`.
    """
    grades = record.get("qrels") or {}
    best = [passage for passage, grade in grades.items() if grade == max(grades.values()) > 0]
    return [*references, *best]


def _found(text: str, evidence: Sequence[str]) -> list[Span]:
    """Where pieces of evidence stand, ascending, apart; of long ones the first characters."""
    spans: list[Span] = []
    for piece in dict.fromkeys(piece.strip() for piece in evidence):
        at = _find(text, piece) if len(piece.encode("utf-8", "replace")) >= _TELLING else -1
        start, end = _edge(text, at), _edge(text, at + min(len(piece), EVIDENCE))
        if at >= 0 and all(end <= other[0] or start >= other[1] for other in spans):
            spans.append((start, end))
        if len(spans) == PLACES:
            break
    return sorted(spans)


def _find(text: str, piece: str) -> int:
    """Its first place that would be left out, else its first; -1 if it has none. A word's part is not that word."""
    return next((at for begin in (HEAD, 0) for at in _words(text, piece, begin)), -1)


def _words(text: str, piece: str, begin: int) -> Iterator[int]:
    at = text.find(piece, begin)
    while at >= 0:
        end = at + len(piece)
        if not (_in_word(text[at - 1 : at + 1]) or _in_word(text[end - 1 : end + 1])):
            yield at
        at = text.find(piece, end)


def _in_word(pair: str) -> bool:
    """Whether a word goes on between two characters; Chinese does not say where words end."""
    return len(pair) == 2 and pair.isascii() and pair.isalnum()


def _merged(spans: list[Span]) -> list[Span]:
    merged = [spans[0]]
    for start, end in spans[1:]:
        if start <= merged[-1][1] + _WORTH_A_MARK:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _edge(text: str, at: int) -> int:
    """The start of the grapheme cluster that a place is in: a cut there takes no mark from its letter."""
    near = _CLUSTER.finditer(text, max(at - _CLUSTER_REACH, 0), at + _CLUSTER_REACH)
    return max((cluster.start() for cluster in near if cluster.start() <= at), default=0) if 0 < at < len(text) else at


def _mark(start: int, end: int, size: int) -> str:
    return f"\n\n[... {end - start:,} characters left out, depth {start / size:.0%} to {end / size:.0%} ...]\n\n"


def _with_marks(text: str, start: int, end: int, evidence: list[Span]) -> Iterator[str]:
    for first, last in evidence:
        if start <= first and last <= end:
            yield f"{text[start:first]}[evidence, depth {first / len(text):.0%}: {text[first:last]}]"
            start = last
    yield text[start:end]
