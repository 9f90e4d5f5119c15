"""A model that finds words: BM25-like matching of the question against the prompt's own context."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from helm_longctx.core.task import AnswerKind
from helm_longctx.core.template import CONTEXT
from helm_longctx.models.forms import recognise

DEMONSTRATIONS = "demos"
NEIGHBOURS = 20
"""Demonstrations that vote on a label, by their similarity."""

_WORD = re.compile(r"\w+")
_UNIT_ENDS = re.compile(r"\n|(?<=[.!?]) ")
_BLOCK_ENDS = re.compile(r"\n\n")
_LENGTH_NORMALISATION = 0.5


def answer(prompt: str) -> str:
    """The answer in the task's format; empty for a prompt of no known form."""
    found = recognise(prompt)
    if found is None:
        return ""
    task, fields = found
    question = " ".join(text for name, text in fields.items() if name not in (CONTEXT, DEMONSTRATIONS))
    return _STRATEGIES[task.answer_kind](fields[CONTEXT], question)


@dataclass(frozen=True)
class Units:
    """A context cut into units, searched by the question's words alone: the whole context is never tokenized.

    Args:
        text: the context.
        ends: what stands between two units.
    """

    text: str
    ends: re.Pattern[str]

    @cached_property
    def starts(self) -> list[int]:
        """Where each unit starts, ascending."""
        return [0, *(match.end() for match in self.ends.finditer(self.text))]

    @cached_property
    def lower(self) -> str:
        """The context in lower case."""
        return self.text.lower()

    def unit(self, number: int) -> str:
        """The text of a unit, with what ends it."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end]

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """Units that hold a term, with the sum of their terms' weights: the rarer, the more."""
        found: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(terms):
            units = {bisect_right(self.starts, place) - 1 for place in self._places(term)}
            weight = math.log1p((len(self.starts) - len(units) + 0.5) / (len(units) + 0.5))
            for unit in units:
                found[unit] += weight
        return found

    def _places(self, term: str) -> Iterable[int]:
        return (match.start() for match in re.finditer(rf"(?<!\w){re.escape(term)}(?!\w)", self.lower))


def words(text: str) -> list[str]:
    """Lower-case words, in order."""
    return _WORD.findall(text.lower())


def value_after(context: str, question: str) -> str:
    """What follows the question's words where most of them stand: the last token of each such line or sentence."""
    units = Units(context, _UNIT_ENDS)
    terms = words(question)
    scores = units.scores(terms)
    if not scores:
        return ""
    best = max(scores.values())
    values = (_last_value(units.unit(n), terms) for n in sorted(scores) if math.isclose(scores[n], best))
    return ", ".join(dict.fromkeys(value for value in values if value))


def _last_value(unit: str, terms: list[str]) -> str:
    rest = unit[max((unit.lower().rfind(term) + len(term) for term in terms), default=0) :].split()
    return rest[-1].strip("\"'.,;:!?()[]{}") if rest else ""


def nearest_label(context: str, question: str) -> str:
    """The label on which the most similar demonstrations agree; a demonstration is a text, then a line `label: X`."""
    units = Units(context, _BLOCK_ENDS)
    scores = units.scores(words(question))
    similar = {n: score / _length(units.unit(n)) for n, score in scores.items()}
    votes: dict[str, float] = defaultdict(float)
    for number in sorted(similar, key=lambda n: (-similar[n], n))[:NEIGHBOURS]:
        votes[_label(units.unit(number))] += similar[number] ** 3
    return max(votes, key=lambda label: votes[label]) if votes else _label(units.unit(0))


def _length(block: str) -> float:
    return float(len(block) ** _LENGTH_NORMALISATION)


def _label(block: str) -> str:
    return block.rstrip().rsplit("\n", 1)[-1].rsplit(":", 1)[-1].strip()


_STRATEGIES: Mapping[AnswerKind, Callable[[str, str], str]] = {"lookup": value_after, "label": nearest_label}
