"""Helpers of the clients for replies: errors, streams and stop sequences.

The packages' own helpers for streams build the request from typed arguments and parse every event into models. Our
clients join the JSON of events to the reply that the server would have sent in one piece, so that a body is sent
exactly as it was made and fields of other servers are kept.
"""

from __future__ import annotations

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


def cut_stream() -> FailureError:
    """Return the failure of a stream that ended before the answer was complete."""
    return FailureError(Failure.TEMPORARY, "the stream ended before the answer was complete")
