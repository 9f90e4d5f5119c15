"""Draws names, words and lines, and fills a text to a length. All of it depends only on the seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.tasks import generation
from helm_longctx.tasks.task import Settings
from helm_longctx.tasks.token_estimate import estimate_tokens

FILL = 0.95
"""Share of the length that a prompt fills, by the estimate of tokens. The rest is for the answer, and for tokenizers
that make more tokens than the estimate."""

INSTRUCTIONS = 100
"""About how many tokens the rest of a prompt has at most: what the text is, how to answer, and what is hidden in it."""

_FILE = Path(__file__).with_name("associations.yaml")
"""What texts say and what questions ask, without a content word that both share."""

_PROBE = 64
"""Number of lines from which the tokens of a line are estimated."""

_STARTS = tuple("bdfghjklmnprstvwz")
_VOWELS = "aeiou"
_ENDS = ("", "", "l", "n", "r", "s", "m", "nd", "rk", "th")


class Owned(NamedTuple):
    """A thing and its owner: in the words of the texts, and in the words of the questions.

    Args:
        said: what a text says that the owner does.
        thing: the thing in a text.
        asked: what a question says about the owner.
        category: what a question calls the thing.
    """

    said: str
    thing: str
    asked: str
    category: str

    @property
    def question(self) -> str:
        """What a question calls it. No content word of it is in a text."""
        return f"{self.category} of someone who {self.asked}"

    @property
    def text(self) -> str:
        """What a text calls it."""
        return f"{self.thing} of someone who {self.said}"


class Material:
    """Words and names from one random generator. No name is drawn twice.

    Args:
        key: identifies the example, such as `recall 42 0`. Equal keys give equal material.
        facts: the material of the question, of which nothing is drawn again.
    """

    def __init__(self, key: str, facts: Material | None = None):
        self.random = Random(key)
        self._used: set[str] = set(facts._used) if facts else set()

    def owned(self) -> Owned:
        """Draw a thing with its owner, who has another occupation or a thing of another category than all before."""
        owned = self.other()
        self._used.add(owned.question)
        return owned

    def other(self) -> Owned:
        """Draw a thing with its owner that is none of `owned`; it can repeat.

        All words of the texts are equally frequent, also words of the questioned things. So neither a search for words
        nor one for rare words finds the things.
        """
        while True:
            said, asked = self.random.choice(associations())
            category, things = self.random.choice(categories())
            owned = Owned(said, self.random.choice(things), asked, category)
            if owned.question not in self._used:
                return owned

    def name(self) -> str:
        """Draw a new invented name, such as `Tavelor Grosimun`."""
        return self._new(lambda: f"{self._word(2)} {self._word(3)}")

    def town(self) -> str:
        """Draw a new invented name of a town, such as `Grosimun`."""
        return self._new(lambda: self._word(3))

    def number(self) -> str:
        """Draw a new number of seven digits."""
        return self._new(lambda: str(self.random.randrange(1_000_000, 10_000_000)))

    def thing(self) -> str:
        """Draw an adjective and a noun; they can repeat."""
        return " ".join(self.random.choice(read_words(kind)) for kind in ("adjective", "noun"))

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
    """Return how many lines fill the length, at least one."""
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
def associations() -> list[tuple[str, str]]:
    """Return what texts say about people, each with what questions ask."""
    return [*read_yaml(_FILE)["associations"].items()]


@cache
def categories() -> list[tuple[str, list[str]]]:
    """Return what questions ask for, each with the things in texts that are meant."""
    return [*read_yaml(_FILE)["categories"].items()]


@cache
def read_words(kind: str) -> list[str]:
    """Return the words of a kind, `adjective` or `noun`, of the package wonderwords that are plain words."""
    words = " ".join(generation.read_words(f"{kind}list.txt")).split()
    return sorted({word for word in words if word.isascii() and word.isalpha() and word.islower()})


_VERBS = ("faces", "follows", "touches", "resembles", "hides", "outlasts", "mirrors", "borders", "supports", "precedes")
