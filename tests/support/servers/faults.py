"""Lists what can go wrong with a call, and makes plans that say when it does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from enum import Enum


class Fault(Enum):
    """A call that did not succeed."""

    RATE_LIMIT = "429 with Retry-After"
    BUSY = "429 without Retry-After"
    THROTTLED = "429 in Bedrock's words, which speak of tokens"
    NO_QUOTA = "429: the account has no quota left"
    SERVER_ERROR = "500"
    OVERLOADED = "503, or Anthropic's 529"
    UNAUTHORIZED = "401, and the message repeats the key"
    TIMEOUT = "no answer"
    DROPPED = "the connection is closed without an answer"
    CUT = "the connection is closed within the answer"
    ENDED = "the answer ends within its text, as if it were whole"
    MALFORMED = "the body is no JSON"
    PAGE = "200 with a page of a proxy"
    STRANGE = "200 with an error in the body"
    REFUSED = "the model refuses"
    FLAGGED = "400: OpenAI's content policy refuses the prompt"
    GONE = "404: the provider does not have the model any more"
    TOO_LONG = "400: the prompt exceeds the model's context"
    NULL = "an answer whose text is null"
    NO_CHOICES = "an answer with an empty list of choices"
    NO_LOGPROBS = "a completion without log-probabilities"
    FILTERED = "a content filter removes the answer"
    EMPTY = "an answer without text"
    SHORT = "the answer has reached the limit of tokens"
    UNREADABLE = "another text than was asked for"
    DECLINED = (
        "404 or 400: the server lacks the model, or the model does not take the request"
    )


STATUS = {
    Fault.RATE_LIMIT: 429,
    Fault.BUSY: 429,
    Fault.THROTTLED: 429,
    Fault.NO_QUOTA: 429,
    Fault.SERVER_ERROR: 500,
    Fault.OVERLOADED: 503,
    Fault.UNAUTHORIZED: 401,
    Fault.FLAGGED: 400,
    Fault.GONE: 404,
    Fault.TOO_LONG: 400,
}

OPENAI_ONLY = {Fault.NULL, Fault.NO_CHOICES, Fault.NO_LOGPROBS}
"""Odd replies in OpenAI's protocol."""

LASTING = {
    Fault.UNAUTHORIZED,
    Fault.NO_QUOTA,
    Fault.FLAGGED,
    Fault.GONE,
    Fault.TOO_LONG,
    Fault.DECLINED,
}
"""Faults after which the same call fails again."""

PASSING = [
    fault
    for fault in Fault
    if fault not in {Fault.BUSY, Fault.THROTTLED, *LASTING, *OPENAI_ONLY}
]
"""Faults in every protocol after which the same call may succeed."""

Plan = Callable[[str, int], "Fault | None"]
"""A function of a prompt, and how often it was asked before, that returns the fault, in whatever order threads ask."""


def none(prompt: str, before: int) -> None:
    """Let every call succeed."""


def share(part: float, kinds: Sequence[Fault], seed: int = 0) -> Plan:
    """Return a plan by which a part of all calls fails, with equal numbers of each kind; the seed decides which."""

    def plan(prompt: str, before: int) -> Fault | None:
        digest = hashlib.sha256(
            f"{seed} {before} {prompt}".encode("utf-8", "surrogatepass")
        ).digest()
        share_of_hash = int.from_bytes(digest[:8], "big") / 2**64
        return (
            kinds[int(share_of_hash / part * len(kinds))]
            if share_of_hash < part
            else None
        )

    return plan


def first(*faults: Fault | None) -> Plan:
    """Return a plan by which each prompt meets these faults one after the other, and succeeds from then on."""
    return lambda prompt, before: faults[before] if before < len(faults) else None


def always(fault: Fault, where: Callable[[str], bool] = lambda prompt: True) -> Plan:
    """Return a plan by which some prompts never succeed."""
    return lambda prompt, before: fault if where(prompt) else None
