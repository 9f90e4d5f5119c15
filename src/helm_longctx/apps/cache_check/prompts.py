"""Draws the prompts of a cache check: a register of keys and values, and a question about five of the keys.

Two prompts with different numbers of their copy have no beginning in common, so a prefix cache cannot confuse them, and
each state of the cache starts with a prompt that the server has never seen.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from random import Random

from helm_longctx.tasks.token_estimate import estimate_tokens

PLACES = ("start", "before the border", "at the border", "after the border", "end")
"""Where the keys that are asked for stand in the register. The border is the end of a shared beginning."""

DEPTHS = 20
"""Number of depths at which questions ask whose keys are spread."""

PLAIN = "plain"

TEXTS = {
    PLAIN: (
        "{copy} is the number of this copy of a register.",
        "The key {key} has the value {value}.",
        "What are the values of these keys: {keys}? Write only the values, in this order.",
    ),
    "accents": (
        "{copy} est le numéro de cette copie du répertoire.",
        "La clé {key} a été associée à la valeur {value}.",
        "Quelles sont les valeurs de ces clés\u00a0: {keys}\u00a0? Écrivez seulement les valeurs, dans cet ordre.",
    ),
    "CJK": (
        "{copy} 是这份登记册的副本编号。",
        "键 {key} 的值是 {value}。",
        "这些键的值是什么：{keys}？请按此顺序只写出这些值。",
    ),
    "other scripts": (
        "{copy} — номер этой копии реестра.",
        "Ключ {key} имеет значение {value}.",
        "Каковы значения этих ключей: {keys}? Напишите только значения, в этом порядке.",
    ),
    "emoji": (
        "{copy} is the number of this copy of a register. 📒",
        "🔑 {key} 👉 {value} 🙂",
        "What are the values of these keys 🔑: {keys}? Write only the values, in this order.",
    ),
    "white space": (
        "{copy} is the number    of this copy of a register.",
        "\tThe key    {key}        has the value\t\t{value}.    ",
        "What are the values of these keys: {keys}? Write only the values, in this order.",
    ),
    "markers": (
        "{copy} is the number of this copy of a register.",
        "The key <|{key}|> has the value </s> {value} <|im_end|>.",
        "What are the values of these keys: {keys}? Write only the values, in this order.",
    ),
}
"""For each kind of text the first line, a line of the register, and the question."""

BLOCKS = (16, 32, 64, 128, 256)
"""Usual sizes of the blocks of a cache, in tokens."""

_NUMBER = re.compile(r"\d+")

_BORDERS = (0.1, 0.9)
"""The part of the register in which the border between a shared and a new part can be, as depths."""


@dataclass(frozen=True)
class CheckPrompt:
    """A prompt.

    Args:
        copy: the number of the copy, at the start of the prompt.
        lines: the keys and values.
        asked_lines: the indices of the keys that are asked for.
        kind: a key of `TEXTS`.
    """

    copy: int
    lines: Sequence[tuple[int, int]]
    asked_lines: Sequence[int]
    kind: str = PLAIN

    @property
    def text(self) -> str:
        """The whole prompt."""
        first, _, question = TEXTS[self.kind]
        keys = ", ".join(str(self.lines[index][0]) for index in self.asked_lines)
        return f"{first.format(copy=self.copy)}\n\n{self.register(len(self.lines))}\n\n{question.format(keys=keys)}"

    def register(self, count: int) -> str:
        """Return the first lines of the register."""
        line = TEXTS[self.kind][1]
        return "\n".join(
            line.format(key=key, value=value) for key, value in self.lines[:count]
        )

    def find_values(self, answer: str) -> list[bool]:
        """Return for each key that is asked for whether the answer has its value."""
        numbers = set()
        for number in _NUMBER.findall(answer):
            if len(number) < 10:
                numbers.add(int(number))
        hits = []
        for index in self.asked_lines:
            hits.append(self.lines[index][1] in numbers)
        return hits


@dataclass(frozen=True)
class RegisterQuestion:
    """A register with a question, of which any number of copies can be made.

    Args:
        seed: the seed of the register.
        size: its number of lines.
        is_spread: whether the keys that are asked for are spread over the register. Questions with seeds that follow
            each other ask at different depths.
        kind: a key of `TEXTS`.
        shared: the first line that differs in a prompt with the same beginning, or None for one that is drawn.
    """

    seed: int
    size: int
    is_spread: bool = False
    kind: str = PLAIN
    shared: int | None = None

    @cached_property
    def lines(self) -> list[tuple[int, int]]:
        """The keys and values."""
        return self._draw("lines")

    @cached_property
    def border(self) -> int:
        """The index of the first line that differs in a prompt with the same beginning.

        Lines have different numbers of tokens, so the borders of some questions lie inside of a block of the cache.
        """
        if self.shared is not None:
            return self.shared
        low, high = (int(depth * self.size) for depth in _BORDERS)
        return Random(f"{self.seed}-border").randint(low, high)

    @property
    def asked_lines(self) -> list[int]:
        """The indices of the keys that are asked for: near both ends and around the border, or spread.

        If the border was chosen, they are so far before it that one is in the last whole block, whatever its size is.
        """
        if self.is_spread:
            first = self.seed % (DEPTHS // len(PLACES)) * len(PLACES)
            depths = range(first, first + len(PLACES))
            lines = []
            for depth in depths:
                lines.append((2 * depth + 1) * self.size // (2 * DEPTHS))
            return lines
        if self.shared is not None:
            line = tokens_per_line(self.kind)
            lines_of_blocks = set()
            for block in BLOCKS:
                lines_of_blocks.add(max(self.border - 1 - int((block - 1) / line), 0))
            return sorted(lines_of_blocks)
        return [1, self.border - 1, self.border, self.border + 1, self.size - 2]

    @property
    def values(self) -> list[int]:
        """The values of the keys that are asked for."""
        values = []
        for index in self.asked_lines:
            values.append(self.lines[index][1])
        return values

    def prompt(self, state: str) -> CheckPrompt:
        """Return the copy for a state of the cache."""
        copy = Random(f"{self.seed}-{state}").randint(10**8, 10**9 - 1)
        return CheckPrompt(copy, self.lines, self.asked_lines, self.kind)

    def sibling(self, state: str, number: int = 0) -> CheckPrompt:
        """Return the same copy with another question."""
        random = Random(f"{self.seed}-sibling-{number}")
        asked_lines = random.sample(range(self.size), len(self.asked_lines))
        return replace(self.prompt(state), asked_lines=asked_lines)

    def relative(self, state: str) -> CheckPrompt:
        """Return a copy with the same beginning, other lines from the border on, and the same lines asked for."""
        lines = [*self.lines[: self.border], *self._draw("relative")[self.border :]]
        return replace(self.prompt(state), lines=lines)

    def other(self, state: str, number: int) -> CheckPrompt:
        """Return a prompt that shares nothing with this one."""
        name = f"{state}-other-{number}"
        return replace(self.prompt(name), lines=self._draw(name))

    def _draw(self, name: str) -> list[tuple[int, int]]:
        random = Random(f"{self.seed}-{name}")
        keys = random.sample(range(10, 10**6), self.size)
        lines = []
        for key in keys:
            lines.append((key, random.randint(10**4, 10**5 - 1)))
        return lines


@cache
def tokens_per_line(kind: str) -> float:
    """Return about how many tokens a line has."""
    sample = RegisterQuestion(0, 200, kind=kind)
    return (
        estimate_tokens(CheckPrompt(0, sample.lines, sample.asked_lines, kind).text)
        / sample.size
    )


def lines_for(tokens: int, kind: str = PLAIN) -> int:
    """Return the number of lines of a prompt with about so many tokens."""
    return max(8, round(tokens / tokens_per_line(kind)))
