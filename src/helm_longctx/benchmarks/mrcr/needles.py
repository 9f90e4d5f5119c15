"""Finds the answers in a conversation that its last turn asks for, and rows of the hub that are wrong."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from helm_longctx.tasks.prompt import Message

# "Prepend X to the 2nd (1 indexed) poem about tapirs. Do not include any other text."
_REQUEST = re.compile(r"Prepend (\S+) to the (\d+)(?:st|nd|rd|th) \(1 indexed\) (.+?)\. Do not include", re.DOTALL)


class Needles(NamedTuple):
    """What the last turn of a conversation asks for.

    Args:
        random_string: the text to put before the answer.
        number: the number of the wanted answer, from 1.
        answers: the answers of the wanted kind, in order.
    """

    random_string: str
    number: int
    answers: list[str]

    @property
    def wanted(self) -> str:
        """The wanted answer after the random string; empty if the conversation has no such answer."""
        return self.random_string + self.answers[self.number - 1] if 0 < self.number <= len(self.answers) else ""


def find_needles(messages: Sequence[Message]) -> Needles | None:
    """Find the answers that the last turn is about; None if it is not one of MRCR's."""
    request = _REQUEST.search(messages[-1]["content"])
    if request is None:
        return None
    random_string, number, wanted = request.groups()
    # Earlier turns ask "write a poem about tapirs".
    asked = f"write a {wanted}".lower()
    answers = [
        answer["content"]
        for turn, answer in pairwise(messages)
        if turn["role"] == "user" and turn["content"].strip().lower() == asked
    ]
    return Needles(random_string, int(number), answers)


def find_answer(messages: Sequence[Message]) -> str | None:
    """Find the answer that the last turn asks for, such as the second poem about tapirs, and add the random string.

    Returns None if the last turn is not one of MRCR's, and an empty text if the conversation has no such answer.
    """
    needles = find_needles(messages)
    return needles.wanted if needles else None


def find_errata(messages: Sequence[Message], answer: str, count: int) -> tuple[str, ...]:
    """Return the rules of `errata.jsonl` by which a row of the hub is wrong.

    Args:
        answer: the row's expected answer.
        count: the row's number of needles.
    """
    needles = find_needles(messages)
    # Without an answer of this kind, nothing is known about the row.
    if needles is None or not needles.wanted:
        return ()
    rules = {"wrong_answer": needles.wanted != answer, "too_many_needles": len(needles.answers) > count}
    return tuple(rule for rule, is_wrong in rules.items() if is_wrong)
