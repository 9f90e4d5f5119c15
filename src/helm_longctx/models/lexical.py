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
NEIGHBOURS = 40
"""Different demonstrations that vote on a label, by their similarity."""

_WORD = re.compile(r"\w+")
_UNIT_ENDS = re.compile(r"\n|(?<=[.!?]) ")
_BLOCK_END = "\n\n"
_LABEL = re.compile(r"\nlabel:(.*)\s*\Z")


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
    def texts(self) -> list[str]:
        """The units, in order, without what ends them."""
        return self.ends.split(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Where each unit starts in the lower-case text (whose length can differ), ascending."""
        return [0, *(match.end() for match in self.ends.finditer(self.lower))]

    @cached_property
    def lower(self) -> str:
        """The context in lower case."""
        return self.text.lower()

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
    terms = words(question)
    units = Units(context, _UNIT_ENDS)
    # Whole tokens too: the words of a hyphenated key can stand in another order in another key.
    scores = units.scores([*terms, *question.lower().split()])
    if not scores:
        return ""
    best = max(scores.values())
    values = (_last_value(units.texts[n], terms) for n in sorted(scores) if math.isclose(scores[n], best))
    return ", ".join(dict.fromkeys(value for value in values if value))


def _last_value(unit: str, terms: list[str]) -> str:
    """The last token; empty if it is but a part of the question."""
    value = unit.split()[-1].strip("\"'.,;:!?()[]{}")
    return "" if set(words(value)).issubset(terms) else value


def nearest_label(context: str, question: str) -> str:
    """The label on which the most similar demonstrations agree; a demonstration is a text, then a line `label: X`."""
    # Labels with few texts repeat them: each text has one vote, or they would crowd out the others.
    # A text with an empty line in it counts from there on: what is before has no label.
    found = {block: _LABEL.search(block) for block in context.split(_BLOCK_END)}
    blocks = [(block, match[1].strip()) for block, match in found.items() if match]
    units = Units(_BLOCK_END.join(block for block, _ in blocks), re.compile(_BLOCK_END))
    scores = units.scores(words(question))
    similar = {n: score / math.sqrt(len(blocks[n][0])) for n, score in scores.items()}
    votes: dict[str, float] = defaultdict(float)
    for number in sorted(similar, key=lambda n: (-similar[n], n))[:NEIGHBOURS]:
        votes[blocks[number][1]] += similar[number] ** 3
    if votes:
        return max(votes, key=lambda label: votes[label])
    return blocks[0][1] if blocks else ""


_STRATEGIES: Mapping[AnswerKind, Callable[[str, str], str]] = {"lookup": value_after, "label": nearest_label}
