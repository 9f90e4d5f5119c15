"""Helpers for tasks whose text is generated: names that nothing has, how much text fills a length, and evidence between
other lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from helm_longctx.tasks.task import Example, Settings, Task
from helm_longctx.tasks.token_estimate import estimate_tokens

FILL = 0.95
"""Share of the length that a prompt fills, by the estimate of tokens. The rest is for the answer, and for tokenizers
that make more tokens than the estimate."""

_PROBE = 64
"""Number of lines from which the tokens of a line are estimated."""

_STARTS = "bdfghjklmnprstvwz"
_VOWELS = "aeiou"


def invent_word(random: Random, syllables: int) -> str:
    """Draw an invented word, such as `losune`."""
    word = ""
    for _ in range(syllables):
        word += random.choice(_STARTS) + random.choice(_VOWELS)
    return word


class NewNames:
    """Draws names from one random generator, none of them twice.

    Args:
        key: identifies the example, such as `recall 42 0`. Equal keys give equal names.
        earlier: names of which none is drawn again.
    """

    def __init__(self, key: str, earlier: NewNames | None = None):
        self.random = Random(key)
        self.used: set[str] = set()
        if earlier:
            self.used.update(earlier.used)

    def draw_new(self, draw: Callable[[], str]) -> str:
        """Return the first name that a function draws and that was not drawn before."""
        while (name := draw()) in self.used:
            pass
        self.used.add(name)
        return name


def draw_examples(
    task: Task,
    settings: Settings,
    draw: Callable[[str, int], Example],
) -> Iterator[Example]:
    """Draw the examples of a task, each question in as many texts as the run entry says.

    Args:
        draw: (name of the question, number of the text) → an example with this name.
    """
    for number in range(task.sample(settings)):
        question, text = divmod(number, settings.texts)
        name = f"{task.name}-{settings.seed}-{question}"
        example = draw(name, text)
        if settings.texts > 1:
            example = replace(example, id=f"{name}-{text}", group=name)
        yield example


def count_lines(length: int, draw: Callable[[], str], rest: int) -> int:
    """Return how many lines fill a length, at least one.

    Args:
        length: tokens of the prompt and the answer.
        draw: returns another line. It is called for the estimate, too.
        rest: tokens of the prompt besides the lines: the question and the instructions.
    """
    probe = "\n".join(draw() for _ in range(_PROBE))
    tokens = FILL * length - rest
    return max(1, int(tokens * _PROBE / estimate_tokens(probe)))


def draw_lines(length: int, draw: Callable[[], str], rest: int) -> list[str]:
    """Return as many lines as fill a length; see `count_lines`."""
    return [draw() for _ in range(count_lines(length, draw, rest))]


def insert_lines(
    lines: Sequence[str],
    inserted: Sequence[str],
    depths: Sequence[float],
) -> list[str]:
    """Return the lines with others between them, each at its depth, 0 (start) to 1 (end)."""
    positions = [round(depth * len(lines)) for depth in depths]
    # From the back, so that an insertion does not move the positions before it.
    result = list(lines)
    for position, text in sorted(zip(positions, inserted, strict=True), reverse=True):
        result.insert(position, text)
    return result
