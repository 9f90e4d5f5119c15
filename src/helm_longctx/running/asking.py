"""Asks a model for all answers of a run.

Sends the requests from several threads, writes each answer to the journal, shows progress, counts
failures and decides when they end the run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, NamedTuple, TypeVar

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import GeneratedOutput, Request, RequestResult
from tqdm import tqdm

from helm_longctx.apis.caching import with_beginning
from helm_longctx.environment import TIMEOUT
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, label_error
from helm_longctx.protocol.sample import Sample
from helm_longctx.redaction.abbreviation import abbreviate, digest
from helm_longctx.redaction.text import redact
from helm_longctx.running.follow_up import follow_up, join_answers
from helm_longctx.running.prefixes import Beginning, Schedule
from helm_longctx.running.sending import Sender
from helm_longctx.running.spending import Spending
from helm_longctx.running.spool import prompt_digest
from helm_longctx.runs.conversation import text_of
from helm_longctx.runs.journal import Journal

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

TICK = 1.0
"""Seconds between two checks of the requests in flight."""

LOG_EVERY = 60.0
"""Seconds between two progress lines in the log, if there is no terminal."""

SETTLE = 10.0
"""Seconds to wait for requests in flight when a run ends early, so that their answers are kept."""

GIVE_UP = 10
"""Number of failures in a row that ends a run, because the server no longer answers."""

LATE = 5
"""A request that exceeds the time limit counts as this many failures, because it costs so much time."""

_ABOUT_ONE_PROMPT = (Failure.TOO_LONG, Failure.REFUSED)
"""Failures that say nothing about other requests, once the model has answered a request."""


class Turn(NamedTuple):
    """A request, and the beginning that its prompt shares with others; None if the provider cannot use that."""

    state: RequestState
    beginning: Beginning | None = None


def ask_all(turns: Sequence[Turn], asking: Asking, parallelism: int) -> list[RequestState]:
    """Return the states with their results, in the same order.

    The first request is sent alone, so that a wrong address, key or model ends the run before others are sent. The
    first request of those that share a beginning is also sent alone, so that the others find it in the provider's
    cache.

    Raises:
        InputError: a client got bad input, the model cannot be asked, or a limit is reached. The message says which
            answers are kept.
    """
    results = {number: answered for number, turn in enumerate(turns) if (answered := asking.recall(turn.state))}
    groups = [turn.beginning and turn.beginning.group for turn in turns]
    schedule = Schedule(groups, (number for number in range(len(turns)) if number not in results))
    calls, width = Calls(asking, asking.sender.limit), 1
    try:
        while schedule or calls:
            while len(calls) < width and (number := schedule.peek()) is not None:
                # There is no room below the cost limit now, but calls in flight may cost less than is reserved for
                # them.
                if not asking.spending.reserve(number, turns[number].state, len(calls)):
                    break
                calls.start(schedule.take(), turns[number])
            for number, call in calls.wait():
                results[number], is_answered = asking.count(number, turns[number].state, call)
                schedule.finish(number, is_answered)
                # One answer shows that the address, key and model are right.
                width = parallelism
            asking.progress.show(len(calls), calls.longest)
    except InputError as error:
        asking.sender.stop()
        # Answers that arrive now are written to the journal by their threads.
        calls.settle(SETTLE)
        raise InputError(f"{error}; {asking.journal.summary()}") from error
    finally:
        asking.sender.stop()
        calls.close()
        asking.progress.close()
    return [results[number] for number in range(len(turns))]


class Asking:
    """Asks for the answer to one request. Several threads may call it; its methods are for one thread.

    Args:
        sender: sends a request.
        whole_request: returns a state's request with its whole prompt, which the state may hold elided.
        journal: has the answers from before a crash, and gets the new ones.
        spending: adds up the costs.
        total: number of requests.

    Attributes:
        sender, journal, spending: the arguments.
        progress: shows progress to the user.
    """

    def __init__(
        self,
        sender: Sender,
        whole_request: Callable[[RequestState], Request],
        journal: Journal,
        spending: Spending,
        total: int,
    ):
        self.sender, self._whole_request, self.journal = sender, whole_request, journal
        self.spending, self.progress = spending, Progress(total)
        self._breaker = Breaker(total, bool(journal))

    def recall(self, state: RequestState) -> RequestState | None:
        """Return the state with its result from the journal; None if there is none."""
        if not self.journal:
            return None
        result = self.journal.get(self._name(state))
        if result is not None and (request := follow_up(state, result)):
            last = self.journal.get(self._follow_up_name(request))
            result = last and join_answers(result, last)
        if result is None:
            return None
        self.progress.recall()
        return replace(state, result=result)

    def __call__(self, turn: Turn) -> RequestResult:
        """Return the result of a request, and of the one that follows it, if there is one.

        Each answer is on disk when this returns.

        Raises:
            InputError: a client got bad input.
        """
        state, shared = turn.state, turn.beginning.characters if turn.beginning else 0
        # A function makes the request, so that an answer in the journal needs no look-up of the whole prompt.
        first = self._ask(self._name(state), lambda: with_beginning(self._whole_request(state), shared))
        request = follow_up(state, first)
        if request is None:
            return first
        return join_answers(first, self._ask(self._follow_up_name(request), lambda: request))

    def _ask(self, name: str, make_request: Callable[[], Request]) -> RequestResult:
        """Return the answer that the journal has, or else send the request."""
        if answer := self.journal.get(name):
            return answer
        attempt = self.sender(make_request())
        if not attempt.result.success:
            return _failure_result(attempt.result.error or "")
        self.journal.add(name, attempt.result)
        # The cache is written last, so that all its replies have their answers in the journal.
        attempt.keep_replies()
        return attempt.result

    def count(self, number: int, state: RequestState, call: Future[RequestResult] | None) -> tuple[RequestState, bool]:
        """Count the outcome of a call. Return the state with its result, and whether that is an answer.

        Args:
            number: the request's number.
            call: a finished call; None for a call that took too long.

        Raises:
            InputError: further requests would fail, too, or a client got bad input.
        """
        result = call.result() if call else _failure_result(label_error(Failure.TEMPORARY, self._timeout_text))
        self.progress.count(_prompt_tokens(state), result)
        self.spending.settle(number, result, is_late=call is None)
        # A late call blocks a thread for the whole time limit.
        self._breaker.add(state.instance.id, result, weight=1 if call else LATE)
        return replace(state, result=result), failure_of(result) is None

    @property
    def _timeout_text(self) -> str:
        return f"no answer within {self.sender.limit:g} seconds ({TIMEOUT} sets the limit)"

    def finish(self) -> int:
        """Log the totals, and return how many requests failed."""
        self.progress.finish()
        if summary := self.spending.summary():
            hlog(summary)
        return self._breaker.finish()

    def _name(self, state: RequestState) -> str:
        return self.journal.name(state.request, prompt_digest(state))

    def _follow_up_name(self, request: Request) -> str:
        return self.journal.name(request, digest(text_of(request)))


class Progress:
    """Counts requests and shows progress, on a terminal as a bar and otherwise as log lines.

    Only one thread may use it. It calls `show` about every second, even if no request has come back.
    """

    def __init__(self, total: int):
        # With `disable=None` there is no bar if there is no terminal.
        self._total, self._bar = total, tqdm(total=total, unit="request", disable=None)
        self._start = self._last_shown = time.monotonic()
        self._answered = self._recalled = self._cached = self._failures = self._tokens = 0

    def recall(self) -> None:
        """Count a request whose answer was in the journal."""
        self._recalled += 1
        self._bar.update()

    def count(self, tokens: int, result: RequestResult) -> None:
        """Count a request that was sent and has come back."""
        self._tokens += tokens
        self._answered += result.success
        self._cached += result.success and result.cached
        self._failures += not result.success
        self._bar.update()

    def show(self, in_flight: int, longest: float) -> None:
        """Show progress if it was not shown for some time.

        Args:
            in_flight: number of requests that were sent and have not come back.
            longest: seconds since the oldest of them was sent.
        """
        now = time.monotonic()
        if now - self._last_shown < (LOG_EVERY if self._bar.disable else 1):
            return
        self._last_shown = now
        speed = f"{self._tokens_per_second:,.0f} input tokens per second"
        waiting = f"{in_flight} in flight, the oldest for {tqdm.format_interval(longest)}"
        if self._bar.disable:
            done = self._answered + self._failures
            left = (self._total - self._recalled - done) * (now - self._start) / max(done, 1)
            left_text = f"{tqdm.format_interval(left)} left" if done else "none answered yet"
            counts = f"{self._recalled + done} of {self._total} requests, {self._failures} failed"
            hlog(f"{counts}, {speed}, {left_text}; {waiting}")
        else:
            self._bar.set_postfix_str(f"tokens/s={self._tokens_per_second:,.0f}, failed={self._failures}, {waiting}")

    def close(self) -> None:
        """Remove the bar from the terminal."""
        self._bar.close()

    def finish(self) -> None:
        """Log the totals."""
        hlog(
            f"{self._answered} requests answered, {self._cached} of them from the request cache, "
            f"{self._recalled} answered before, {self._failures} failed; "
            f"{self._tokens_per_second:,.0f} input tokens per second"
        )

    @property
    def _tokens_per_second(self) -> float:
        return self._tokens / max(time.monotonic() - self._start, 1e-9)


class Calls(Generic[Item, Outcome]):
    """Calls a function in daemon threads. They block neither Ctrl-C nor the end of the process.

    A thread makes one call after the other: on a busy machine it takes longer to start a thread than to make a call.

    Args:
        function: takes an item.
        limit: seconds that a call may take; None for no limit.
    """

    def __init__(self, function: Callable[[Item], Outcome], limit: float | None):
        self._function, self._limit = function, limit
        self._starts: dict[int, float] = {}  # the oldest first
        self._items: SimpleQueue[tuple[int, Item] | None] = SimpleQueue()
        self._finished: SimpleQueue[tuple[int, Future[Outcome]]] = SimpleQueue()
        self._threads = self._idle_threads = 0

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, number: int, item: Item) -> None:
        """Call the function with an item; `number` identifies the call."""
        self._starts[number] = time.monotonic()
        self._items.put((number, item))
        if self._idle_threads:
            self._idle_threads -= 1
            return
        self._threads += 1
        Thread(target=self._work, daemon=True).start()

    def wait(self) -> Iterator[tuple[int, Future[Outcome] | None]]:
        """Wait at most one `TICK`, then yield the number and the future of a finished call.

        A call over the time limit is yielded with None. It continues in its thread, but nothing waits for it.
        """
        yield from self._take(TICK)
        while self._limit is not None and self.longest > self._limit:
            number = next(iter(self._starts))
            # Now another request can start in its place.
            del self._starts[number]
            yield number, None

    def settle(self, seconds: float) -> None:
        """Wait until the calls in flight have finished, but at most so many seconds."""
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

    def _take(self, seconds: float) -> Iterator[tuple[int, Future[Outcome]]]:
        """Yield the next finished call, unless it was late. Wait for it at most so many seconds."""
        try:
            number, future = self._finished.get(timeout=seconds)
        except Empty:
            return
        self._idle_threads += 1
        if self._starts.pop(number, None) is not None:
            yield number, future

    def _work(self) -> None:
        while (call := self._items.get()) is not None:
            number, item = call
            future: Future[Outcome] = Future()
            try:
                future.set_result(self._function(item))
            except BaseException as error:  # raised again by the thread that asks for the result
                future.set_exception(error)
            self._finished.put((number, future))


class Breaker:
    """Counts failures by kind, logs the first of each kind, and ends a run with too many failures in a row.

    Args:
        total: number of requests of the run.
        has_answers: whether some were answered in an earlier process.
    """

    def __init__(self, total: int, has_answers: bool):
        # If all requests of a short run fail, the run also ends with the error.
        self._limit, self._has_answers = min(GIVE_UP, total), has_answers
        self._kinds: Counter[Failure] = Counter()
        self._in_a_row = 0

    def add(self, name: str | None, result: RequestResult, weight: int = 1) -> None:
        """Count the result of a request.

        Args:
            name: the instance's, for the log.
            weight: how many failures a failure counts as.

        Raises:
            InputError: further requests would fail, too.
        """
        kind = failure_of(result)
        if kind is None:
            self._in_a_row, self._has_answers = 0, True
            return
        self._kinds[kind] += 1
        error = " ".join((result.error or "").split())
        # Every other request would fail for the same reason, so the run ends at the first failure.
        if kind.ends_run:
            raise InputError(f"the model cannot be asked: {error}")
        self._in_a_row += 0 if kind in _ABOUT_ONE_PROMPT and self._has_answers else weight
        if self._in_a_row >= self._limit:
            raise InputError(f"{self._kinds.total()} requests failed, the last ones in a row: {error}")
        if self._kinds[kind] == 1:
            hwarn(f"request for {name} failed: {error}; further {kind.value} failures are only counted")

    def finish(self) -> int:
        """Log how many requests failed and why, and return their number."""
        if self._kinds:
            hwarn("failed: " + ", ".join(f"{number} {kind.value}" for kind, number in self._kinds.most_common()))
        return self._kinds.total()


def _prompt_tokens(state: RequestState) -> int:
    """Return the number of tokens of the prompt if it was counted, or else an estimate."""
    sample = Sample.from_json(state.instance.extra_data)
    assert sample.full_prompt is not None
    return sample.prompt_tokens or sample.input_tokens or sample.full_prompt["characters"] // 4


def _failure_result(error: str) -> RequestResult:
    """Make the result of a failed request. It has one empty completion, without which HELM's pages cannot show it."""
    nothing = GeneratedOutput(text="", logprob=0, tokens=[])
    return RequestResult(
        success=False, embedding=[], completions=[nothing], cached=False, error=abbreviate(redact(error))
    )
