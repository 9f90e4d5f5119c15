"""Sends the requests of a run, several at the same time, in one loop for questions with and without a program.

The widths, the limit in dollars, the deadline of a request, and the rule that equal requests are sent once stand here
and nowhere else. One thread works the loop; a program puts its requests into the queue from its own thread.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from helm_longctx.helm_api import RequestResult
from helm_longctx.interruptions import seconds_to_settle
from helm_longctx.models.apis.calls import WorkerPool
from helm_longctx.models.apis.sending import Sender
from helm_longctx.models.results import answer_of, failure_of
from helm_longctx.runner.prefixes import SharedPrefix
from helm_longctx.runner.resuming import find_answer
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.runs.journal import Journal


class PendingRequest(NamedTuple):
    """A request, the beginning that it shares with others if the provider uses it, and whether they are in a batch."""

    request: StoredRequest
    beginning: SharedPrefix | None = None
    in_batch: bool = False


class RequestOutcome(NamedTuple):
    """What came of a request.

    Attributes:
        is_late: whether the request took longer than it may.
        is_first: whether no equal request had an answer before. The first one has the costs.
    """

    result: RequestResult
    is_late: bool = False
    is_first: bool = True


@dataclass(frozen=True)
class QueuedRequest:
    """A request that waits to be sent, and what gets its outcome, in the thread of the loop."""

    pending: PendingRequest
    deliver: Callable[[RequestOutcome], None]


class RequestEngine:
    """The queue of a run's requests, and those in flight.

    Only `submit` and `wake` may be called by other threads than the one of the loop.

    Args:
        ask: returns the result of a request. Several threads call it.
        late_failure: returns the result of a request that took too long.
        parallelism: most requests in flight. Until one is answered or a question is counted there is only one, so that
            a wrong address, key or model is found with one request.
    """

    def __init__(
        self,
        ask: Callable[[PendingRequest], RequestResult],
        sender: Sender,
        journal: Journal,
        spending: Spending,
        late_failure: Callable[[], RequestResult],
        parallelism: int,
    ):
        self.sender = sender
        self.parallelism = parallelism
        self.is_proven = False
        self._journal = journal
        self._spending = spending
        self._late_failure = late_failure
        self._calls = WorkerPool(ask, sender.limit)
        self._numbers = count()
        self._queue: deque[QueuedRequest] = deque()
        # Requests that wait for the answer to an equal one in flight.
        self._held: defaultdict[str, list[QueuedRequest]] = defaultdict(list)
        self._in_flight: dict[int, tuple[str, QueuedRequest]] = {}
        self._names_in_flight: set[str] = set()
        self._charged: set[str] = set()
        self._has_answer = False

    @property
    def width(self) -> int:
        """Most requests in flight now."""
        return self.parallelism if self._has_answer or self.is_proven else 1

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        return len(self._calls)

    @property
    def longest(self) -> float:
        """Seconds since the oldest request in flight was sent."""
        return self._calls.longest

    @property
    def open_requests(self) -> int:
        """How many requests wait or are in flight."""
        held = sum(len(requests) for requests in self._held.values())
        return len(self._queue) + held + len(self._calls)

    @property
    def has_room(self) -> bool:
        """Whether another request would be sent at once, if the limit in dollars has room for it."""
        return not self._queue and len(self._calls) < self.width

    def submit(self, queued: QueuedRequest) -> None:
        """Put a request into the queue. Another thread than the loop's calls `wake` afterwards."""
        self._queue.append(queued)

    def wake(self) -> None:
        """End the wait of the loop."""
        self._calls.wake()

    def start(self) -> None:
        """Send waiting requests while there is room, and deliver those that the journal has.

        Raises an `InputError` if nothing in flight can make room below the limit in dollars.
        """
        while self._queue and len(self._calls) < self.width:
            queued = self._queue.popleft()
            request = queued.pending.request
            name = self._journal.name(request.request, request.digest)
            if name in self._names_in_flight:
                self._held[name].append(queued)
                continue
            kept = find_answer(request, self._journal, name)
            if kept is not None:
                self._deliver(name, queued, kept, is_late=False)
                continue
            number = next(self._numbers)
            if not self._spending.reserve(number, request, len(self._calls)):
                # Requests in flight may cost less than is reserved for them.
                self._queue.appendleft(queued)
                return
            self._in_flight[number] = (name, queued)
            self._names_in_flight.add(name)
            self._calls.start(number, queued.pending)

    def wait(self, seconds: float) -> None:
        """Wait at most so many seconds, and deliver what has arrived.

        Raises an `InputError` if a client got bad input.
        """
        for number, call in self._calls.wait(seconds):
            name, queued = self._in_flight.pop(number)
            self._names_in_flight.discard(name)
            self._finish(number, name, queued, call)

    def settle(self) -> None:
        """Wait some seconds for the requests in flight: they are paid for, and their threads write the journal."""
        self._calls.settle(seconds_to_settle())

    def close(self) -> None:
        """End the threads, each after its request."""
        self.sender.stop()
        self._calls.close()

    def _finish(
        self,
        number: int,
        name: str,
        queued: QueuedRequest,
        call: Future[RequestResult] | None,
    ) -> None:
        if call is None:
            result = self._late_failure()
        else:
            result = call.result()
        answer = answer_of(result)
        self._spending.settle(number, answer, is_late=call is None)
        self._has_answer |= answer.is_answered
        self._queue.extendleft(reversed(self._held.pop(name, [])))
        self._deliver(name, queued, result, is_late=call is None)

    def _deliver(
        self,
        name: str,
        queued: QueuedRequest,
        result: RequestResult,
        is_late: bool,
    ) -> None:
        is_first = name not in self._charged
        if failure_of(result) is None:
            self._charged.add(name)
        queued.deliver(
            RequestOutcome(
                result=result,
                is_late=is_late,
                is_first=is_first,
            )
        )
