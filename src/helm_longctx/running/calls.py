"""Calls in daemon threads, which hold up neither Ctrl-C nor the end of the process, however long they hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

TICK = 1.0
"""Seconds between two looks at the clock."""


class Calls(Generic[Item, Outcome]):
    """Calls in flight, each with a number of its caller and in a thread of its own.

    Args:
        function: what is called.
        limit: seconds that a call may take; None for any time.
    """

    def __init__(self, function: Callable[[Item], Outcome], limit: float | None):
        self._function, self._limit = function, limit
        self._calls: dict[Future[Outcome], tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def start(self, number: int, item: Item) -> None:
        """Call the function with an item."""
        future: Future[Outcome] = Future()
        self._calls[future] = number, time.monotonic()
        Thread(target=self._call, args=(item, future), daemon=True).start()

    def wait(self) -> Iterator[tuple[int, Future[Outcome] | None]]:
        """Wait at most a `TICK`; then the calls that are over, and with None those that have taken too long.

        A call that has taken too long goes on in its thread, but nobody waits for it.
        """
        over = wait(self._calls, TICK, FIRST_COMPLETED).done
        for future, (number, start) in list(self._calls.items()):
            late = self._limit is not None and time.monotonic() - start > self._limit
            if future in over or late:
                del self._calls[future]
                yield number, future if future in over else None

    def settle(self, seconds: float) -> None:
        """Give the calls in flight some time to end."""
        wait(self._calls, seconds)

    @property
    def longest(self) -> float:
        """Seconds since the start of the oldest call; 0 without one."""
        return time.monotonic() - min((start for _, start in self._calls.values()), default=time.monotonic())

    def _call(self, item: Item, future: Future[Outcome]) -> None:
        try:
            future.set_result(self._function(item))
        except BaseException as error:  # the thread that waits raises it
            future.set_exception(error)
