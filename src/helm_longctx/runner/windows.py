"""Finds out from the lengths of prompts that a server refuses prompts above its window, in whatever words.

Most servers say it, and `failures` knows their codes and words. This module decides for the others: a server that
answers short prompts and refuses all longer ones in the same words refuses them because of their length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from helm_longctx.failures import Failure
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.results import add_facts, failure_of

_LEAST_CHOICES = 20
"""Of so many ways to choose the refused prompts among all, the longest ones must be the one. One refused prompt of
twenty could be the longest by chance."""

_DIGITS = re.compile(r"\d+")

_SHORT_PROMPT = "Answer with one word: yes."


@dataclass
class WaitingPrompts:
    """The sizes of the prompts that were not sent yet, by the numbers of their requests, and of the others.

    Attributes:
        longest_answered: characters of the longest prompt that was answered; 0 if there is none.
        shortest_refused: characters of the shortest prompt that was refused.
    """

    sizes: dict[int, int]
    longest_answered: int = 0
    shortest_refused: float = math.inf

    def take(self, number: int) -> None:
        """Remove a prompt that was sent."""
        self.sizes.pop(number, None)

    def answer(self, characters: int) -> None:
        """Count a prompt that was answered."""
        self.longest_answered = max(self.longest_answered, characters)

    def refuse(self, characters: int) -> None:
        """Count a prompt that was refused."""
        self.shortest_refused = min(self.shortest_refused, characters)

    @property
    def has_shorter(self) -> bool:
        """Whether a prompt waits that is shorter than all refused ones, so that it may fit into the window."""
        return min(self.sizes.values(), default=math.inf) < self.shortest_refused


def shorten_request(request: Request) -> Request:
    """Return a request of the same form and with the same parameters that asks for one word."""
    if not request.messages:
        return replace(request, prompt=_SHORT_PROMPT)
    return replace(
        request, prompt="", messages=[{"role": "user", "content": _SHORT_PROMPT}]
    )


def name_window(
    sizes: Sequence[int],
    results: Sequence[RequestResult],
) -> dict[int, RequestResult]:
    """Return those bad requests that are too long by all that is known, with the kind `too_long`, by their positions.

    They are at least two, longer than every prompt that was answered, and have the same words except for numbers.

    Args:
        sizes: the characters of the prompts.
        results: the results, in the same order.
    """
    answered = []
    refused = []
    unnamed = {}
    for number, (size, result) in enumerate(zip(sizes, results, strict=True)):
        failure = failure_of(result)
        if failure is None:
            answered.append(size)
        elif failure is Failure.TOO_LONG:
            refused.append(size)
        elif failure is Failure.BAD_REQUEST:
            refused.append(size)
            unnamed[number] = result
    if len(unnamed) < 2 or not answered:
        return {}
    longest = max(answered)
    choices = math.comb(len(answered) + len(refused), len(refused))
    if (
        min(refused) <= longest
        or choices < _LEAST_CHOICES
        or not _have_same_words(unnamed.values())
    ):
        return {}
    renamed = {}
    for number, result in unnamed.items():
        reason = f"the server answers prompts of up to {longest:,} characters, and refuses longer ones"
        named = add_facts(result, failure=Failure.TOO_LONG)
        renamed[number] = replace(named, error=f"{reason}: {result.error or ''}")
    return renamed


def _have_same_words(refused: Iterable[RequestResult]) -> bool:
    return len({_DIGITS.sub("", result.error or "") for result in refused}) == 1
