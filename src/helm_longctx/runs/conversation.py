"""Converts a request's prompt to one text: a single turn is unchanged, a conversation is the JSON of its messages.

A run's files identify a prompt by the SHA-256 of this text, and `prompts.zst` stores it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from helm.benchmark.scenarios.scenario import Input
from helm.common.request import Request

from helm_longctx.runs.elision import LIMIT, elide

Asking = TypeVar("Asking", Request, Input)
Messages = list[dict[str, str]]

END_MESSAGES = 3
"""Number of messages at each end of a long conversation that a page shows."""


def to_text(prompt: str, messages: Sequence[Mapping[str, str]] | None) -> str:
    """Return the prompt, or the JSON of the messages if there are any."""
    # Digests of prompts depend on this format. With escapes, Chinese texts would be illegible on pages.
    return json.dumps(messages, ensure_ascii=False) if messages else prompt


def request_text(asking: Asking) -> str:
    """Return the prompt or conversation of a request or an input as one text."""
    return to_text(asking.prompt if isinstance(asking, Request) else asking.text, asking.messages)


def with_text(asking: Asking, text: str) -> Asking:
    """Replace the prompt of a request or input, or its conversation if it has one, by a text from `request_text`."""
    return _replace_text(asking, text, json.loads(text) if asking.messages else None)


def _replace_text(asking: Asking, text: str, messages: Messages | None) -> Asking:
    if asking.messages:
        return replace(asking, messages=messages)
    return replace(asking, prompt=text) if isinstance(asking, Request) else replace(asking, text=text)


def without_text(asking: Asking) -> Asking:
    """Remove the prompt of a request or input, or its conversation except the system message, for `with_text`."""
    kept: Messages = [message for message in asking.messages or () if message["role"] == "system"]
    return _replace_text(asking, "", [*kept, {"role": "user", "content": ""}])


def elide_texts(asking: Asking, evidence: Sequence[str]) -> Asking:
    """Shorten the prompt or conversation of a request or input for display."""
    if asking.messages:
        return replace(asking, messages=elide_messages(asking.messages, evidence))
    return with_text(asking, elide(request_text(asking), evidence))


def elide_messages(messages: Sequence[Mapping[str, str]], evidence: Sequence[str]) -> Messages:
    """Shorten a conversation for display: keep both ends and the messages with evidence, and elide each of them.

    A message with the role `left out` stands for the messages between them. A conversation of at most `LIMIT`
    characters is returned unchanged, so a conversation can be elided twice.
    """
    if sum(len(message["content"]) for message in messages) <= LIMIT:
        return [dict(message) for message in messages]
    # An empty piece would occur in every message.
    pieces = [piece.strip() for piece in evidence if piece.strip()]
    visible: Messages = []
    left_out: Messages = []
    for number, message in enumerate(messages):
        is_end = number < END_MESSAGES or number >= len(messages) - END_MESSAGES
        if is_end or any(piece in message["content"] for piece in pieces):
            if left_out:
                characters = sum(len(each["content"]) for each in left_out)
                text = f"[... {len(left_out):,} messages, {characters:,} characters left out ...]"
                visible.append({"role": "left out", "content": text})
                left_out = []
            visible.append({**message, "content": elide(message["content"], evidence)})
        else:
            left_out.append(dict(message))
    return visible
