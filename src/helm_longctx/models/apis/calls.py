"""Makes calls to models and judges at the same time, for runs with and without programs, judges, checks and batches.

The calls are made in daemon threads. They block neither Ctrl-C nor the end of the process. When the loop that waits for
them ends with an error, they are cancelled: what is in flight may be answered, and nothing else is sent, also not by
calls that they have made in their turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Generic, TypeVar

from tqdm import tqdm

from helm_longctx.interruptions import seconds_to_settle

TICK = 1.0
"""Seconds between two checks of the calls in flight."""

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


class CancelledError(Exception):
    """Nobody waits for the call any more, so it may send no further request."""


class _Cancellation:
    """Whether the calls of a pool are cancelled.

    Args:
        parent: the cancellation of the call that has made the pool, if a call has made it.
    """

    def __init__(self, parent: _Cancellation | None):
        self._parent = parent
        self._event = Event()

    def set(self) -> None:
        self._event.set()

    @property
    def is_set(self) -> bool:
        return self._event.is_set() or (
            self._parent is not None and self._parent.is_set
        )


_cancellation: ContextVar[_Cancellation | None] = ContextVar(
    "cancellation", default=None
)
"""The cancellation of the call that this thread makes."""


def is_cancelled() -> bool:
    """Whether the call that this thread makes is cancelled. Code that no pool calls never is."""
    cancellation = _cancellation.get()
    return cancellation is not None and cancellation.is_set


def check_cancellation() -> None:
    """Raise a `CancelledError` if the call that this thread makes is cancelled. It stands before each request."""
    if is_cancelled():
        raise CancelledError


def call_with_bar(
    function: Callable[[_Item], _Value],
    items: Sequence[_Item],
    parallelism: int,
    title: str,
    unit: str = "it",
) -> list[_Value]:
    """Call a function as `call_all` does, with a progress bar on a terminal."""
    with tqdm(total=len(items), desc=title, unit=unit, disable=None) as bar:

        def call(item: _Item) -> _Value:
            value = function(item)
            bar.update()
            return value

        return call_all(call, items, parallelism)


def call_all(
    function: Callable[[_Item], _Value],
    items: Sequence[_Item],
    parallelism: int,
    limit: float | None = None,
    late: Callable[[_Item], _Value] | None = None,
) -> list[_Value]:
    """Call a function with each item, several at the same time, and return the values in the order of the items.

    After an error or Ctrl-C no other call begins. What is in flight is paid for, so it has `seconds_to_settle` to end.

    Args:
        limit: seconds that a call may take, or None for no limit.
        late: returns the value of a call that takes longer. It is needed with a limit.

    Raises:
        CancelledError: this is itself a call of a pool, and it is cancelled.
        Exception: of the function.
    """
    values: dict[int, _Value] = {}
    waiting = list(enumerate(items))[::-1]
    with closing(WorkerPool(function, limit)) as calls:
        try:
            while waiting or calls:
                check_cancellation()
                while waiting and len(calls) < parallelism:
                    calls.start(*waiting.pop())
                for number, call in calls.wait():
                    if call is None:
                        assert late is not None
                        values[number] = late(items[number])
                    else:
                        values[number] = call.result()
        except BaseException:
            calls.settle(seconds_to_settle())
            raise
    return [values[number] for number in range(len(items))]


class WorkerPool(Generic[_Item, _Value]):
    """Calls a function in daemon threads. They block neither Ctrl-C nor the end of the process.

    A thread makes one call after the other: on a busy machine it takes longer to start a thread than to make a call.
    A call may take `limit` seconds, or None for no limit.
    """

    def __init__(self, function: Callable[[_Item], _Value], limit: float | None):
        self._function = function
        self._limit = limit
        self._starts: dict[int, float] = {}  # the oldest first
        self._items: SimpleQueue[tuple[int, _Item] | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[int, Future[_Value]] | None] = SimpleQueue()
        self._threads = self._idle_threads = 0
        self._cancellation = _Cancellation(_cancellation.get())

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, number: int, item: _Item) -> None:
        """Call the function with an item; `number` identifies the call."""
        if self._idle_threads:
            self._idle_threads -= 1
        else:
            # First, because a system that refuses further threads must leave no call that nobody waits for.
            Thread(target=self._work, daemon=True).start()
            self._threads += 1
        self._starts[number] = time.monotonic()
        self._items.put((number, item))

    def wait(
        self,
        seconds: float | None = None,
    ) -> Iterator[tuple[int, Future[_Value] | None]]:
        """Wait at most so many seconds, or else one `TICK`, then yield the number and the future of a finished call.

        A call over the time limit is yielded with None. It continues in its thread, but nothing waits for it.
        """
        yield from self._take(TICK if seconds is None else seconds)
        while self._limit is not None and self.longest > self._limit:
            number = next(iter(self._starts))
            # Now another request can start.
            del self._starts[number]
            yield number, None

    def wake(self) -> None:
        """End the wait of the thread that is in `wait`. Any thread may call this."""
        self._finished.put(None)

    def settle(self, seconds: float) -> None:
        """Cancel the calls, and wait until those in flight have finished, but at most so many seconds."""
        self._cancellation.set()
        end = time.monotonic() + seconds
        while self._starts and (left := end - time.monotonic()) > 0:
            list(self._take(left))

    def close(self) -> None:
        """End the threads, each after its call."""
        for _ in range(self._threads):
            self._items.put(None)

    @property
    def longest(self) -> float:
        """Seconds since the start of the oldest call in flight; 0 if there is none."""
        now = time.monotonic()
        return now - next(iter(self._starts.values()), now)

    def _take(self, seconds: float) -> Iterator[tuple[int, Future[_Value]]]:
        """Yield the next finished call, unless it was late. Wait for it at most so many seconds."""
        try:
            finished = self._finished.get(timeout=seconds)
        except Empty:
            return
        if finished is None:
            return
        number, future = finished
        self._idle_threads += 1
        if self._starts.pop(number, None) is not None:
            yield number, future

    def _work(self) -> None:
        # Each thread has a context of its own.
        _cancellation.set(self._cancellation)
        while (call := self._items.get()) is not None:
            number, item = call
            future: Future[_Value] = Future()
            try:
                future.set_result(self._function(item))
            except (
                BaseException
            ) as error:  # raised again by the thread that asks for the result
                future.set_exception(error)
            self._finished.put((number, future))
