"""How the baseline models answer OneRuler's questions, whose texts are in downloaded files."""

import re
from collections import Counter
from collections.abc import Sequence

from helm_longctx.tasks.prompt import Message

QUESTION = 800
"""Most characters of the question at the end of a prompt."""

BEFORE = 120
"""Most characters of a needle before its number."""

_NUMBER = re.compile(r"\b\d{7}\b|(?<=\D)\d{7}(?=\D)")
_ITEM = re.compile(r"\d+\. (\S+)")
_QUOTED = re.compile(r"[\"“„«「『](.{1,40}?)[\"”“»」』]")


LIST = 50
"""Fewest items of a list of words. Other benchmarks' prompts have shorter lists."""


def find_numbers(messages: Sequence[Message]) -> str | None:
    """Return the numbers after the words that the question quotes; None if there are none."""
    text = messages[-1]["content"]
    asked = set(_QUOTED.findall(text[-QUESTION:]))
    found = [
        match[0]
        for match in _NUMBER.finditer(text)
        if any(word in text[max(0, match.start() - BEFORE) : match.start()] for word in asked)
    ]
    return ", ".join(dict.fromkeys(found)) or None


def find_words(messages: Sequence[Message]) -> str | None:
    """Return the ten most frequent words of the list; None if there is no long list."""
    items = _ITEM.findall(messages[-1]["content"])
    return ", ".join(word for word, _ in Counter(items).most_common(10)) if len(items) >= LIST else None
