"""Helpers of the clients for replies: errors, streams and stop sequences.

The packages' own helpers for streams build the request from typed arguments and parse every event into models. Our
clients join the JSON of events to the reply that the server would have sent in one piece, so that a body is sent
exactly as it was made and fields of other servers are kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from helm_longctx.failures import Failure, FailureError, failure_of_text
from helm_longctx.models.apis.parameters import Body


def check_error(reply: Body) -> None:
    """Check that a reply with the status 200 is not an error.

    Raises:
        FailureError: the reply is an error.
    """
    if error := reply.get("error"):
        raise FailureError(failure_of_text(str(error)), f"the server answered with an error: {error}")


def cut_at_stop(text: str, stops: list[str]) -> str:
    """Return a text up to the first stop sequence, for models that do not support them."""
    return text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]


def check_piece(name: str, value: object) -> None:
    """Check that a piece of an answer is text, if its field holds text.

    Raises:
        FailureError: it is of another type.
    """
    if name in ("content", "text") and not isinstance(value, str | None):
        raise FailureError(Failure.MALFORMED, "the server's answer has a piece that is not text")


class TimedEvents:
    """The events of a stream, with the time at which the first piece of the answer arrives.

    Args:
        events: the events, as JSON.
        start: the monotonic time at which the request was sent.

    Attributes:
        seconds: seconds from `start` to the first event with text; None before it.
    """

    def __init__(self, events: Iterable[Any], start: float):
        self._events, self._start = events, start
        self.seconds: float | None = None

    def __iter__(self) -> Iterator[Any]:
        for event in self._events:
            if self.seconds is None and _has_text(event):
                self.seconds = time.monotonic() - self._start
            yield event


def _has_text(event: Any) -> bool:
    """Whether an event of OpenAI's or Anthropic's protocol has a piece of an answer or of its reasoning."""
    if not isinstance(event, Mapping):
        return False
    choices = event.get("choices")
    parts = [part for part in choices if isinstance(part, Mapping)] if isinstance(choices, list) else [event]
    texts = [part.get("delta") or {"text": part.get("text")} for part in parts]
    return any(
        bool(text) and isinstance(text, str) and name not in ("role", "type")
        for fields in texts
        if isinstance(fields, Mapping)
        for name, text in fields.items()
    )


def cut_stream() -> FailureError:
    """Return the failure of a stream that ended before the answer was complete."""
    return FailureError(Failure.TEMPORARY, "the stream ended before the answer was complete")
