"""Marks the beginning that a request shares with others, so that a provider's prompt cache keeps it.

Some providers cache a prompt up to a marked block (`Provider.cache_mark`); others find every long beginning by
themselves. A mark changes no text: a prompt in two blocks is the same prompt.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from helm_longctx.helm_api import Request
from helm_longctx.models.sampling import SampledRequest, with_fields


class LongCache(NamedTuple):
    """A prompt cache that keeps beginnings until a batch has read them.

    Args:
        mark: the field that marks the end of a beginning in the body of a request.
        write_price: the price of writing to this cache, relative to the price of writing to the usual one.
    """

    mark: Mapping[str, Any]
    write_price: float


@dataclass(frozen=True)
class _SharedRequest(SampledRequest):
    """A HELM request whose prompt shares its beginning with other requests.

    Args:
        in_batch: whether requests in a batch share it. They are read much later.
    """

    shared_characters: int = 0
    in_batch: bool = False


def with_beginning(
    request: Request,
    characters: int,
    in_batch: bool = False,
) -> Request:
    """Add the length of the shared beginning to a request. Return the same request if the length is 0."""
    if not characters:
        return request
    return with_fields(
        _SharedRequest, request, shared_characters=characters, in_batch=in_batch
    )


def without_beginning(request: Request) -> Request:
    """Return the request without the length of its shared beginning. The answer does not change."""
    if isinstance(request, _SharedRequest):
        return replace(request, shared_characters=0, in_batch=False)
    return request


def mark_beginning(
    request: Request,
    messages: list[dict[str, Any]],
    mark: Mapping[str, Any] | None,
    long_cache: LongCache | None = None,
) -> list[dict[str, Any]]:
    """Return messages with a mark at the end of the shared beginning. A conversation gets no mark."""
    shared = getattr(request, "shared_characters", 0)
    if long_cache and getattr(request, "in_batch", False):
        mark = long_cache.mark
    # `shared_characters` counts characters of a single prompt, so it cannot point into a conversation.
    if not shared or not mark or len(messages) != 1:
        return messages
    text = messages[0]["content"]
    # The mark is between words, so that no token is divided, and at the same position in all prompts of a group.
    end = text.rfind(" ", 0, shared)
    end = shared if end <= 0 else end
    if not text[end:].strip():  # a block must not be empty
        end = len(text)
    parts = []
    for part in (text[:end], text[end:]):
        if part:
            parts.append({"type": "text", "text": part})
    return [{**messages[0], "content": [{**parts[0], **mark}, *parts[1:]]}]
