"""Limits the size of replies, and the replies to HELM's clients that post with the package `requests`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from helm_longctx.environment import MAX_REPLY, MEBIBYTE, max_reply, request_timeout
from helm_longctx.failures import Failure, FailureError

_PIECE = 1 << 13
"""Bytes of a body that are read at once. Decompression can make them a thousand times as long."""

LATE = "the server has not sent its whole answer in time"


def check_size(size: float, most: float) -> None:
    """Check the size of the part of a reply that has arrived.

    Args:
        size, most: bytes after decompression.

    Raises:
        FailureError: the reply is larger than allowed.
    """
    if size > most:
        limit = f"{most / MEBIBYTE:g} MiB, the limit in {MAX_REPLY}"
        raise FailureError(Failure.MALFORMED, f"the server's answer is larger than {limit}")


class LimitedBody:
    """The body of a reply, which `requests` reads into memory as a whole: with a limit of its size and its time.

    The time starts when the object is made. Everything except `stream` is taken from urllib3's response.

    Args:
        raw: urllib3's response.

    Raises:
        InputError: a setting has a wrong value.
    """

    def __init__(self, raw: Any):
        self._raw, self._most, self._end = raw, max_reply(), time.monotonic() + request_timeout()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        """Yield the body in the pieces in which it arrives.

        Raises:
            FailureError: the reply is too large, or takes too long.
        """
        size = 0
        while piece := self._raw.read1(_PIECE, decode_content=decode_content):
            size += len(piece)
            check_size(size, self._most)
            if time.monotonic() > self._end:
                raise FailureError(Failure.TEMPORARY, LATE)
            yield piece
