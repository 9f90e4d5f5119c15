"""A long text cut into units and searched by words, without tokenizing it."""

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


def best(scores: dict[int, float], count: int) -> list[int]:
    """The units with the highest scores, best first; of equal ones the first in the text."""
    return sorted(scores, key=lambda number: (-scores[number], number))[:count]
