"""Draws names, words and lines, and fills a text to a length. All of it depends only on the seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from random import Random

from helm_longctx.tasks.task import Settings
from helm_longctx.tasks.token_estimate import estimate_tokens

FILL = 0.95
"""Share of the length that a prompt fills, by the estimate of tokens. The rest is for the answer, and for tokenizers
that make more tokens than the estimate."""

INSTRUCTIONS = 100
"""About how many tokens the rest of a prompt has at most: what the text is, how to answer, and what is hidden in it."""

_PROBE = 64
"""Number of lines from which the tokens of a line are estimated."""

_STARTS = tuple("bdfghjklmnprstvwz")
_VOWELS = "aeiou"
_ENDS = ("", "", "l", "n", "r", "s", "m", "nd", "rk", "th")


class Material:
    """Words and names from one random generator. No name is drawn twice.

    Args:
        key: identifies the example, such as `recall 42 0`. Equal keys give equal material.
    """

    def __init__(self, key: str):
        self.random = Random(key)
        self._used: set[str] = set()

    def name(self) -> str:
        """Draw a new invented name, such as `Tavelor Grosimun`."""
        return self._new(lambda: f"{self._word(2)} {self._word(3)}")

    def number(self) -> str:
        """Draw a new number of seven digits."""
        return self._new(lambda: str(self.random.randrange(1_000_000, 10_000_000)))

    def thing(self) -> str:
        """Draw an adjective and a noun; they can repeat."""
        return f"{self.random.choice(adjectives())} {self.random.choice(nouns())}"

    def new_thing(self) -> str:
        """Draw an adjective and a noun that were not drawn by this method before."""
        return self._new(self.thing)

    def sentence(self) -> str:
        """Draw a sentence that says nothing."""
        return f"The {self.thing()} {self.random.choice(_VERBS)} the {self.thing()}."

    def _word(self, syllables: int) -> str:
        choice = self.random.choice
        return "".join(choice(_STARTS) + choice(_VOWELS) for _ in range(syllables)).capitalize() + choice(_ENDS)

    def _new(self, draw: Callable[[], str]) -> str:
        while (text := draw()) in self._used:
            pass
        self._used.add(text)
        return text


def draw_lines(settings: Settings, draw: Callable[[], str], rest: str) -> list[str]:
    """Draw as many lines as fill the length; see `count_lines`."""
    return [draw() for _ in range(count_lines(settings, draw, rest))]


def count_lines(settings: Settings, draw: Callable[[], str], rest: str) -> int:
    """Return how many lines fill the length, at least one.

    Args:
        draw: draws a line.
        rest: the text of the prompt besides the lines.
    """
    probe = "\n".join(draw() for _ in range(_PROBE))
    tokens = FILL * settings.level - estimate_tokens(rest) - INSTRUCTIONS
    return max(1, int(tokens * _PROBE / estimate_tokens(probe)))


def insert(lines: list[str], hidden: Sequence[str], depths: Sequence[float]) -> list[str]:
    """Return the lines with others between them, each at its depth, 0 (start) to 1 (end)."""
    places = [round(depth * len(lines)) for depth in depths]
    # From the back, so that an insertion does not move the places before it.
    result = list(lines)
    for place, text in sorted(zip(places, hidden, strict=True), reverse=True):
        result.insert(place, text)
    return result


@cache
def adjectives() -> list[str]:
    """Return the adjectives of the package wonderwords that are plain words."""
    return _read_words("adjectivelist.txt")


@cache
def nouns() -> list[str]:
    """Return the nouns of the package wonderwords that are plain words."""
    return _read_words("nounlist.txt")


def _read_words(file: str) -> list[str]:
    text = (resources.files("wonderwords.assets") / file).read_text(encoding="utf-8")
    return sorted({word for word in text.split() if word.isascii() and word.isalpha() and word.islower()})


_VERBS = ("faces", "follows", "touches", "resembles", "hides", "outlasts", "mirrors", "borders", "supports", "precedes")
