"""Searches a long text for words, without tokenizing all of it."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Units:
    """A text in units such as lines, sentences or paragraphs, which can be searched for words.

    Only the searched words are looked up. Splitting a context of a million tokens into words would take too long.

    Args:
        text: the text.
        ends: the pattern between two units.
    """

    text: str
    ends: re.Pattern[str]

    @cached_property
    def texts(self) -> list[str]:
        """The units, in order, without the text between them."""
        return self.ends.split(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """The start of each unit in the lower-case text, ascending. Lower case can change the length of a text."""
        # The ends are searched in the lower-case text, because terms are searched there, too.
        return [0, *(match.end() for match in self.ends.finditer(self.lower))]

    @cached_property
    def lower(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """Score the units that contain a term by the sum of their terms' weights. Rare terms weigh more."""
        scores: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(terms):
            units = {bisect_right(self.starts, place) - 1 for place in self._places(term)}
            # BM25's weight of a term by the number of units that have it; log1p keeps it above 0.
            weight = math.log1p((len(self.starts) - len(units) + 0.5) / (len(units) + 0.5))
            for unit in units:
                scores[unit] += weight
        return scores

    def _places(self, term: str) -> Iterable[int]:
        return (match.start() for match in re.finditer(rf"(?<!\w){re.escape(term)}(?!\w)", self.lower))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.lower())


def best(scores: dict[int, float], count: int) -> list[int]:
    """Return the units with the highest scores, best first. Among equal scores the first unit in the text wins."""
    return sorted(scores, key=lambda number: (-scores[number], number))[:count]
