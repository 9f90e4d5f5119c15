"""Joins the events of a stream into the reply that the server would have sent in one piece.

The packages' own helpers build the request from typed arguments and parse every event into models. These functions work
on the same JSON as replies in one piece, so that a body is sent exactly as it was made and fields of other servers are
kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from helm_longctx.apis.parameters import Body
from helm_longctx.failures import Failure, FailureError

_OPENAI_FIELDS = ("id", "object", "created", "model", "usage")
_CUT = "the stream ended before the answer was complete"


def join_openai(chunks: Iterable[Any]) -> Body:
    """Join the chunks of a chat or of a completion with one choice.

    Raises:
        FailureError: the stream ended without a finish reason.
    """
    reply: Body = {}
    texts: defaultdict[str, list[str]] = defaultdict(list)
    reason, chats = None, True
    for chunk in chunks:
        reply |= {name: chunk[name] for name in _OPENAI_FIELDS if chunk.get(name) is not None}
        for choice in chunk.get("choices") or []:
            # Chunks of completions have a text in the place of a delta.
            chats = "text" not in choice
            delta = (choice.get("delta") or {}) if chats else {"text": choice["text"]}
            for name, text in delta.items():
                if isinstance(text, str):
                    texts[name].append(text)
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise FailureError(Failure.TEMPORARY, _CUT)
    parts: Body = {name: "".join(pieces) for name, pieces in texts.items()}
    # `role` stands last because its pieces were joined, too, and some servers send it with every chunk.
    choice = {"message": {"content": None, **parts, "role": "assistant"}} if chats else {"text": parts.get("text")}
    return {**reply, "choices": [{"index": 0, "finish_reason": reason, **choice}]}


def join_anthropic(events: Iterable[Any]) -> Body:
    """Join the events of a message.

    Raises:
        FailureError: the stream ended without a stop reason.
    """
    message: Body = {}
    blocks: list[Body] = []
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            _extend(blocks[event["index"]], event["delta"])
        elif kind == "message_delta":
            # The counts in `message_delta` are cumulative, so they replace those of `message_start`.
            usage = {**(message.get("usage") or {}), **(event.get("usage") or {})}
            message |= {**event["delta"], "usage": usage}
    if not message.get("stop_reason"):
        raise FailureError(Failure.TEMPORARY, _CUT)
    return {**message, "content": blocks}


def _extend(block: Body, delta: Body) -> None:
    """Append the texts of a delta (`text_delta`, `thinking_delta`, …) to the fields of the same names."""
    for name, text in delta.items():
        if name != "type" and isinstance(text, str):
            block[name] = f"{block.get(name) or ''}{text}"
