"""Gathers items of several threads, and answers them together."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_SECONDS = 0.05
"""Seconds for which a batch that is not full waits for further items."""


class Gatherer(Generic[Item, Answer]):
    """Answers the items of threads that call it at the same time together. Of its threads one works at a time.

    Args:
        answer_all: takes a list of items, and returns an answer or an exception for each.
        size: most items of a list.
    """

    def __init__(self, answer_all: Callable[[list[Item]], Sequence[Answer | Exception]], size: int):
        self._answer_all, self._size = answer_all, size
        self._waiting: list[tuple[Item, Future[Answer]]] = []
        self._turn = threading.Lock()

    def __call__(self, item: Item) -> Answer:
        """Return the answer to an item, or raise its exception."""
        mine: Future[Answer] = Future()
        self._waiting.append((item, mine))
        # The thread whose turn it is answers the items of the threads that wait.
        with self._turn:
            while not mine.done():
                end = time.monotonic() + _SECONDS
                while len(self._waiting) < self._size and time.monotonic() < end:
                    time.sleep(_SECONDS / 10)
                batch, self._waiting[: self._size] = self._waiting[: self._size], []
                try:
                    answers = self._answer_all([item for item, _ in batch])
                except BaseException as error:  # the thread of each item raises it
                    answers = [error] * len(batch)  # type: ignore[list-item]
                for (_, future), answer in zip(batch, answers, strict=True):
                    if isinstance(answer, BaseException):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        return mine.result()
