"""Controls how fast requests are sent to an address: limits per minute, and pauses that the server asks for."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

LONGEST_PAUSE = 300.0
"""Longest wait in seconds after a `Retry-After`. A longer value means an exceeded quota; the next attempt shows it."""


class Pace:
    """Says when a request may be sent. All threads that send to the same address and model share it.

    Requests are spread evenly over the minute: providers also refuse bursts within a minute's limit.
    """

    def __init__(self, requests: float | None, tokens: float | None):
        self._request_seconds, self._token_seconds = (
            60 / limit if limit else 0.0 for limit in (requests, tokens)
        )
        self._lock = Lock()
        self._next_request = self._next_token = self._resume = 0.0

    def wait(self, tokens: float) -> None:
        """Wait until a request of so many tokens may be sent."""
        start = time.monotonic() + self.reserve(tokens)
        # This is a loop, because another thread can start a pause while this one sleeps without holding the lock.
        while (seconds := max(start - time.monotonic(), self.rest())) > 0:
            time.sleep(seconds)

    def reserve(self, tokens: float) -> float:
        """Reserve the next slot for a request of so many tokens, and return the seconds until then."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next_request, self._next_token)
            self._next_request = start + self._request_seconds
            self._next_token = start + tokens * self._token_seconds
            return start - now

    def rest(self) -> float:
        """Return the seconds that are left of a pause; 0 or less if there is none."""
        return self._resume - time.monotonic()

    def correct(self, tokens: float) -> None:
        """Count the tokens that a request used beyond those that were reserved for it; negative if it used fewer."""
        with self._lock:
            self._next_token += tokens * self._token_seconds

    def pause(self, seconds: float) -> None:
        """Send nothing for some seconds, because the server asks for it."""
        with self._lock:
            self._resume = max(
                self._resume, time.monotonic() + min(seconds, LONGEST_PAUSE)
            )


_MakesPace = Callable[[str, float | None, float | None], Pace]
"""Function that makes a pace from a name, a limit of requests per minute and a limit of tokens per minute."""

_makers: list[_MakesPace] = [lambda name, requests, tokens: Pace(requests, tokens)]


@contextmanager
def use_paces(make: _MakesPace) -> Iterator[None]:
    """Use `make` for all paces of this process in the block, for example to share limits with other processes."""
    before = list(_makers)
    _makers[:] = [make]
    pace.cache_clear()
    try:
        yield
    finally:
        _makers[:] = before
        pace.cache_clear()


@cache
def pace(
    address: str,
    model: str,
    requests: float | None,
    tokens: float | None,
) -> Pace:
    """Return the one pace of an address and a model in this process."""
    return _makers[0](f"{address} {model}", requests, tokens)
