"""Marks the beginning that a request shares with others, so that a provider's prompt cache keeps it.

Some providers cache a prompt up to a marked block (`Provider.cache_mark`); others find every long beginning by
themselves. A mark changes no text: a prompt in two blocks is the same prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from helm.common.request import Request


@dataclass(frozen=True)
class SharedRequest(Request):
    """A HELM request whose prompt shares its beginning with other requests.

    Args:
        shared_characters: length of that beginning.
    """

    shared_characters: int = 0


def with_beginning(request: Request, characters: int) -> Request:
    """Add the length of the shared beginning to a request. Return the same request if the length is 0."""
    if not characters:
        return request
    values = {field.name: getattr(request, field.name) for field in fields(Request)}
    return SharedRequest(**values, shared_characters=characters)


def without_beginning(request: Request) -> Request:
    """Return the request without the length of its shared beginning, which does not change the answer."""
    return replace(request, shared_characters=0) if isinstance(request, SharedRequest) else request


def mark_beginning(
    request: Request, messages: list[dict[str, Any]], mark: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return messages with a mark at the end of the shared beginning. A conversation gets no mark.

    Args:
        mark: the provider's mark; None if it has none.
    """
    shared = getattr(request, "shared_characters", 0)
    # `shared_characters` counts characters of a single prompt, so it cannot point into a conversation.
    if not shared or not mark or len(messages) != 1:
        return messages
    return [{**messages[0], "content": _blocks(messages[0], shared, mark)}]


def _blocks(message: Mapping[str, Any], shared: int, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    text = message["content"]
    # The mark is between words, so that no token is divided, and at the same place in all prompts of a group.
    place = text.rfind(" ", 0, shared)
    place = shared if place <= 0 else place
    if not text[place:].strip():  # a block must not be empty
        place = len(text)
    parts = [{"type": "text", "text": part} for part in (text[:place], text[place:]) if part]
    return [{**parts[0], **mark}, *parts[1:]]
