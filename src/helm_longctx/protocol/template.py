"""Prompt templates: a user turn, an answer prefix, and what joins them."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from helm_longctx.protocol.prompt import Prompt

CONTEXT = "context"
"""The field that is long, and the only one that truncation may cut."""

_PLACE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
"""A brace that is written twice, or a name in braces."""


def fill(template: str, fields: Mapping[str, object]) -> str:
    """A template that was read from a file, with the values of `fields` in its places.

    It equals `str.format` where all places are plain names. It never looks up attributes or items of a value, and
    leaves what is no place of `fields` as it is.
    """

    def value(place: re.Match[str]) -> str:
        if place[1] is None:
            return place[0][0]
        return str(fields[place[1]]) if place[1] in fields else place[0]

    return _PLACE.sub(value, template)


@dataclass(frozen=True)
class Template:
    """A benchmark's prompt, as its official code has it.

    Args:
        user: the user turn, with `{field}` places. It is what a chat model gets.
        prefix: how the answer begins. A completion prompt ends with it.
        separator: what stands between the two in a completion prompt.
    """

    user: str
    prefix: str
    separator: str = "\n"

    @property
    def names(self) -> frozenset[str]:
        """Its fields."""
        return frozenset(self._completion_places[1])

    def render(self, fields: Mapping[str, str]) -> Prompt:
        """The prompt of an example."""
        return Prompt.of_text(
            self.user.format(**fields), self.separator, self.prefix.format(**fields), self._context_span(fields)
        )

    def _context_span(self, fields: Mapping[str, str]) -> tuple[int, int] | None:
        """Where the context stands in the user turn: [start, end) in characters; None if there is none."""
        before, place, _ = self.user.partition("{" + CONTEXT + "}")
        start = len(before.format(**fields))
        return (start, start + len(fields[CONTEXT])) if place else None

    def parse(self, prompt: str) -> dict[str, str] | None:
        """The fields of a rendered prompt, chat or completion form; None if it is another template's.

        The question stands at the end and the context is long, so places are looked for from the end.
        """
        for literals, names in (self._completion_places, self._chat_places):
            fields = _split_at(prompt, literals, names)
            if fields is not None:
                return fields
        return None

    @cached_property
    def _chat_places(self) -> tuple[list[str], list[str]]:
        return _places(self.user)

    @cached_property
    def _completion_places(self) -> tuple[list[str], list[str]]:
        return _places(self.user + self.separator + self.prefix)


NO_TEMPLATE = Template("", "")
"""Of tasks whose examples bring their own messages."""


def _places(text: str) -> tuple[list[str], list[str]]:
    """A template's literals (one more than fields) and its field names, in order."""
    literals, names = [""], []
    for literal, name, _, _ in string.Formatter().parse(text):
        literals[-1] += literal
        if name is not None:
            names.append(name)
            literals.append("")
    return literals, names


def _split_at(prompt: str, literals: list[str], names: list[str]) -> dict[str, str] | None:
    if not (prompt.startswith(literals[0]) and prompt.endswith(literals[-1])):
        return None
    first, end = len(literals[0]), len(prompt) - len(literals[-1])
    fields: dict[str, str] = {}
    for number in range(len(names) - 1, 0, -1):
        literal, before, start = literals[number], literals[number - 1], first
        if names[number] == CONTEXT and literal and before and number > 1:
            # What stands before the context is short, so its end is looked for from its start.
            start = prompt.rfind(before, first, end) + len(before)
            at = prompt.find(literal, start, end)
        else:
            # With nothing between two places, the later one (the context, after demonstrations) takes all.
            at = prompt.rfind(literal, first, end) if literal else first
        if at < start:
            return None
        fields[names[number]] = prompt[at + len(literal) : end]
        end = at
    fields[names[0]] = prompt[first:end]
    return fields
