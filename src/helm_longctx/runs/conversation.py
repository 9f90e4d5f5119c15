"""What a request asks, as one text: a prompt as it stands, a conversation as the JSON of its messages.

By this text a run's files know a prompt: its digest names it, and `prompts.zst` holds it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from helm.benchmark.scenarios.scenario import Input
from helm.common.request import Request

from helm_longctx.runs.elision import LIMIT, elide

Asked = TypeVar("Asked", Request, Input)
Messages = list[dict[str, str]]

SHOWN = 3
"""Messages at either end of a long conversation that a page shows."""


def to_text(prompt: str, messages: Sequence[Mapping[str, str]] | None) -> str:
    """The one text of a prompt, or of a conversation if there are messages."""
    return json.dumps(messages, ensure_ascii=False) if messages else prompt


def text_of(asked: Asked) -> str:
    """The one text of a request or an input."""
    return to_text(asked.prompt if isinstance(asked, Request) else asked.text, asked.messages)


def with_text(asked: Asked, text: str) -> Asked:
    """A request or input that asks this text: a conversation where it has messages, else a prompt."""
    if asked.messages:
        return replace(asked, messages=json.loads(text))
    return replace(asked, prompt=text) if isinstance(asked, Request) else replace(asked, text=text)


def elide_asked(asked: Asked, evidence: Sequence[str]) -> Asked:
    """A request or input for the screen: long texts are elided, and long conversations."""
    if asked.messages:
        return replace(asked, messages=elide_messages(asked.messages, evidence))
    if isinstance(asked, Request):
        return replace(asked, prompt=elide(asked.prompt, evidence))
    return replace(asked, text=elide(asked.text, evidence))


def elide_messages(messages: Sequence[Mapping[str, str]], evidence: Sequence[str]) -> Messages:
    """A conversation for the screen: its ends and the messages that hold evidence, each elided.

    What is left out between them is one message of the role `left out`. A conversation of at most `LIMIT` characters
    is given back whole, so what was elided once passes through.
    """
    if sum(len(message["content"]) for message in messages) <= LIMIT:
        return [dict(message) for message in messages]
    pieces = [piece.strip() for piece in evidence if piece.strip()]
    shown: Messages = []
    left_out: Messages = []
    for number, message in enumerate(messages):
        is_end = number < SHOWN or number >= len(messages) - SHOWN
        if is_end or any(piece in message["content"] for piece in pieces):
            shown += [*_mark(left_out), {**message, "content": elide(message["content"], evidence)}]
            left_out = []
        else:
            left_out.append(dict(message))
    return shown


def _mark(left_out: Messages) -> Messages:
    if not left_out:
        return []
    characters = sum(len(message["content"]) for message in left_out)
    return [
        {"role": "left out", "content": f"[... {len(left_out):,} messages, {characters:,} characters left out ...]"}
    ]
