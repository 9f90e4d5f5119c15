"""Asks a model for all answers of a run: sends the requests from several threads, and journals each answer at once."""

from __future__ import annotations

import ctypes
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tqdm import tqdm

from helm_longctx.errors import InputError, describe_count
from helm_longctx.failures import Failure
from helm_longctx.helm_api import Request, RequestResult, RequestState
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.caching import with_beginning
from helm_longctx.models.apis.calls import TICK
from helm_longctx.models.apis.sending import Sender
from helm_longctx.models.objects import PromptFacts, with_facts
from helm_longctx.models.results import answer_of, failure_of, make_failure
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.run_settings import TIMEOUT
from helm_longctx.runner.engine import (
    PendingRequest,
    QueuedRequest,
    RequestEngine,
    RequestOutcome,
)
from helm_longctx.runner.follow_up import follow_up, join_answers
from helm_longctx.runner.prefixes import CHARACTERS, Schedule
from helm_longctx.runner.resuming import find_answer
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.runner.windows import (
    WaitingPrompts,
    name_window,
    shorten_request,
)
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.prompts import request_text
from helm_longctx.tasks.answer import Answer
from helm_longctx.tasks.sample import Sample, find_cut, find_limit

_LOG_EVERY = 60.0
"""Seconds between two progress lines in the log, if there is no terminal."""

MEMORY_TOKENS = 4_000_000
"""Tokens of prompts after which memory is given back. This takes milliseconds."""

GIVE_UP = 10
"""Number of failures in a row that ends a run, because the server no longer answers."""

_ABOUT_ONE_PROMPT = (Failure.TOO_LONG, Failure.REFUSED)
"""Failures that say nothing about other requests, once the model has answered a request."""

_REFUSED_PROMPT = (Failure.TOO_LONG, Failure.BAD_REQUEST)
"""Failures that a prompt above the model's window can have."""

_LATE = 5
"""A request that exceeds the time limit counts as this many failures, because it costs so much time."""


def ask_all(
    pending: Sequence[PendingRequest],
    asking: Asking,
    parallelism: int,
) -> list[RequestState]:
    """Return the states with their results, in the same order.

    The first request is sent alone, so that a wrong address, key or model ends the run before others are sent. The
    first request of those that share a beginning is also sent alone, so that the others find it in the provider's
    cache.

    Raises:
        InputError: a client got bad input, the model cannot be asked, or a limit is reached. The message says which
            answers are kept.
    """
    results = {}
    groups = []
    for index, waiting in enumerate(pending):
        answered = asking.recall(waiting.request)
        if answered:
            results[index] = answered
        groups.append(waiting.beginning and waiting.beginning.group)
    unasked = [number for number in range(len(pending)) if number not in results]
    asking.waiting = WaitingPrompts(
        {number: pending[number].request.characters for number in unasked}
    )
    schedule = Schedule(groups, iter(unasked))
    engine = asking.make_engine(parallelism)
    try:
        while schedule or asking.has_open_questions:
            while schedule.peek() is not None and asking.may_begin(engine):
                number = schedule.take()
                asking.begin(number, pending[number], engine)
                engine.start()
            engine.start()
            engine.wait(asking.patience)
            for number, outcome in asking.take_finished().items():
                results[number], is_answered = asking.count(
                    number, pending[number].request, outcome
                )
                schedule.finish(number, is_answered)
                # One answer shows that the address, key and model are right.
                engine.is_proven = True
            asking.progress.show(engine.in_flight, engine.longest)
    except BaseException as error:
        asking.sender.stop()
        # What is in flight is paid for, and its threads write the answers to the journal. In a process of the user a
        # second Ctrl-C ends the wait.
        engine.settle()
        if isinstance(error, InputError):
            raise InputError(f"{error}; {asking.journal.summary()}") from error
        raise
    finally:
        engine.close()
        asking.close()
    return asking.name_windows(
        pending, [results[number] for number in range(len(pending))]
    )


class Asking:
    """Asks for the answer to each question of a run. Several threads may call it; its methods are for one thread.

    Args:
        journal: has the answers from before a crash, and gets the new ones.
        spending: adds up the costs.

    Attributes:
        waiting: the sizes of the prompts that were not sent yet.
    """

    def __init__(
        self,
        sender: Sender,
        journal: Journal,
        spending: Spending,
        total: int,
    ):
        self.sender = sender
        self.journal = journal
        self.spending = spending
        self.progress = Progress(total)
        self.waiting = WaitingPrompts({})
        self._answers_short: bool | None = None
        self._breaker = CircuitBreaker(total, bool(journal))
        self._answer_warnings = _AnswerWarnings()
        self._open_questions = 0
        self._finished: dict[int, RequestOutcome] = {}

    def make_engine(self, parallelism: int) -> RequestEngine:
        """Return the engine that sends the requests."""
        return RequestEngine(
            ask=self,
            sender=self.sender,
            journal=self.journal,
            spending=self.spending,
            late_failure=self.late_failure,
            parallelism=parallelism,
        )

    @property
    def patience(self) -> float:
        """Most seconds between two looks of the loop at the questions."""
        return TICK

    @property
    def has_open_questions(self) -> bool:
        """Whether a question was begun that has no result yet."""
        return self._open_questions > 0

    def may_begin(self, engine: RequestEngine) -> bool:
        """Whether another question may begin."""
        return engine.has_room

    def begin(
        self,
        number: int,
        pending: PendingRequest,
        engine: RequestEngine,
    ) -> None:
        """Begin a question: put its request into the queue."""
        self._open_questions += 1
        engine.submit(
            QueuedRequest(pending=pending, deliver=partial(self._finish, number))
        )

    def take_finished(self) -> dict[int, RequestOutcome]:
        """Return what came of the questions that have finished since the last call, by their numbers."""
        finished = self._finished
        self._finished = {}
        return finished

    def close(self) -> None:
        """End what belongs to the loop. It has no further use."""
        self.progress.close()

    def _finish(self, number: int, outcome: RequestOutcome) -> None:
        self._open_questions -= 1
        self._finished[number] = outcome

    def recall(self, asked: StoredRequest) -> RequestState | None:
        """Return the state of a request with its result from an earlier run or the journal, if there is one."""
        result = find_answer(asked, self.journal)
        if result is None:
            return None
        self.progress.recall()
        return replace(asked.state, result=result)

    def __call__(self, pending: PendingRequest) -> RequestResult:
        """Return the result of a request, and of the one that follows it, if there is one; it is on disk.

        Raises an `InputError` if a client got bad input.
        """
        asked = pending.request
        shared = pending.beginning.characters if pending.beginning else 0

        # A function makes the request, so that an answer in the journal needs no look-up of the whole prompt.
        def make_request() -> Request:
            if self.sender.takes_facts:
                return with_facts(asked.whole(), _find_facts(asked))
            return with_beginning(asked.whole(), shared, pending.in_batch)

        first = asked.first or self._ask(
            self.journal.name(asked.request, asked.digest), make_request
        )
        second = follow_up(asked.request, asked.sample, first)
        if second is None:
            return first

        def make_second() -> Request:
            if not self.sender.takes_facts:
                return second
            return with_facts(second, replace(_find_facts(asked), rest=None))

        name = self.journal.name(second, digest(request_text(second)))
        return join_answers(first, self._ask(name, make_second))

    def _ask(self, name: str, make_request: Callable[[], Request]) -> RequestResult:
        """Return the answer that the journal has, or else send the request."""
        if answer := self.journal.get(name):
            return answer
        attempt = self.sender(make_request())
        if not attempt.result.success:
            kind = failure_of(attempt.result) or Failure.UNKNOWN
            return make_failure(kind, attempt.result.error or "")
        self.journal.add(name, attempt.result)
        # The cache is written last, so that all its replies have their answers in the journal.
        attempt.cache_replies()
        return attempt.result

    def count(
        self,
        number: int,
        asked: StoredRequest,
        outcome: RequestOutcome,
    ) -> tuple[RequestState, bool]:
        """Count a question's outcome. Return its state with the result, and whether that is an answer.

        Raises an `InputError` if further requests would fail, too.
        """
        result = outcome.result
        sample = asked.sample
        instance = asked.state.instance.id
        tokens = (
            sample.prompt_tokens
            or sample.input_tokens
            or asked.characters // CHARACTERS
        )
        self.progress.count(tokens, result)
        answer = answer_of(result)
        self.waiting.take(number)
        # A late call blocks a thread for the whole time limit.
        weight = _LATE if outcome.is_late else 1
        if answer.failure is None:
            self.waiting.answer(asked.characters)
        elif answer.failure in _REFUSED_PROMPT:
            self.waiting.refuse(asked.characters)
            weight = 0 if self._is_only_long(asked, answer.failure) else 1
        self._breaker.add(instance, answer, weight=weight)
        self._answer_warnings.add(instance, sample, answer)
        return replace(asked.state, result=result), answer.is_answered

    def _is_only_long(self, asked: StoredRequest, failure: Failure) -> bool:
        """Whether a refused prompt is longer than one that was answered, or than one that waits and may be answered.

        For a refusal without a known reason, a short request is sent once. It shows that the form is right.
        """
        if self.waiting.longest_answered:
            return asked.characters > self.waiting.longest_answered
        if not self.waiting.has_shorter:
            return False
        if failure is Failure.TOO_LONG:
            return True
        if self._answers_short is None:
            attempt = self.sender(shorten_request(asked.request))
            self._answers_short = attempt.result.success
        return self._answers_short

    def name_windows(
        self,
        pending: Sequence[PendingRequest],
        states: list[RequestState],
    ) -> list[RequestState]:
        """Return the states, in which requests that were refused for their length are named so."""
        sizes = [waiting.request.characters for waiting in pending]
        results = []
        for state in states:
            assert state.result
            results.append(state.result)
        renamed = name_window(sizes, results)
        self._breaker.rename(len(renamed))
        changed = list(states)
        for number, result in renamed.items():
            changed[number] = replace(states[number], result=result)
        return changed

    def late_failure(self) -> RequestResult:
        """Return the failure of a request that took too long."""
        text = (
            f"no answer within {self.sender.limit:g} seconds ({TIMEOUT} sets the limit)"
        )
        return make_failure(Failure.TEMPORARY, text)

    def finish(self) -> None:
        """Log the totals."""
        self.progress.finish()
        self._answer_warnings.finish()
        if summary := self.spending.summary():
            helm_log.info(summary)
        self._breaker.finish()


def _find_facts(asked: StoredRequest) -> PromptFacts:
    """Return what is known of the prompt of a request."""
    sample = asked.sample
    instance = asked.state.instance
    return PromptFacts(
        str(instance.id),
        str(instance.sub_split or ""),
        sample.length,
        sample.depth,
        sample.rest,
    )


def _release_memory() -> None:
    """Give free memory back to the system, if the allocator is glibc's; others need no call.

    Each request copies its prompt several times. glibc keeps memory that was freed, in up to eight arenas for each
    core, so with many threads a run would take two or three times the memory that its prompts need.
    """
    with suppress(AttributeError, OSError, TypeError):  # TypeError on Windows
        ctypes.CDLL(None).malloc_trim(0)


class Progress:
    """Counts requests and shows progress, on a terminal or in a notebook as a bar and otherwise as log lines.

    Only one thread may use it. It calls `show` about every second, even if no request has come back.
    """

    def __init__(self, total: int):
        # With `disable=None` there is no bar if there is no terminal. A notebook has none, but shows bars.
        self._total = total
        self._bar = tqdm(
            total=total,
            unit="request",
            disable=False if "ipykernel" in sys.modules else None,
        )
        self._start = self._last_shown = time.monotonic()
        self._answered = self._recalled = self._cached = self._failures = (
            self._tokens
        ) = 0

    def recall(self) -> None:
        """Count a request whose answer was in the journal."""
        self._recalled += 1
        self._bar.update()

    def count(self, tokens: int, result: RequestResult) -> None:
        """Count a request that was sent and has come back. Now and then, memory is released."""
        before = self._tokens // MEMORY_TOKENS
        self._tokens += tokens
        if self._tokens // MEMORY_TOKENS > before:
            _release_memory()
        self._answered += result.success
        self._cached += result.success and result.cached
        self._failures += not result.success
        self._bar.update()

    def show(self, in_flight: int, longest: float) -> None:
        """Show progress now and then; the oldest request in flight was sent `longest` seconds ago."""
        now = time.monotonic()
        if now - self._last_shown < (_LOG_EVERY if self._bar.disable else 1):
            return
        self._last_shown = now
        speed = f"{self._tokens_per_second:,.0f} input tokens per second"
        waiting = (
            f"{in_flight} in flight, the oldest for {tqdm.format_interval(longest)}"
        )
        if self._bar.disable:
            done = self._answered + self._failures
            left = (
                (self._total - self._recalled - done)
                * (now - self._start)
                / max(done, 1)
            )
            left_text = (
                f"{tqdm.format_interval(left)} left" if done else "none answered yet"
            )
            counts = f"{self._recalled + done} of {self._total} requests, {self._failures} failed"
            helm_log.info(f"{counts}, {speed}, {left_text}; {waiting}")
        else:
            self._bar.set_postfix_str(
                f"tokens/s={self._tokens_per_second:,.0f}, failed={self._failures}, {waiting}"
            )

    def close(self) -> None:
        """Remove the bar from the terminal."""
        self._bar.close()

    def finish(self) -> None:
        """Log how many requests were answered, from where, how many failed, and the tokens per second."""
        helm_log.info(
            f"{describe_count(self._answered, 'request')} answered, {self._cached} of them from the request cache, "
            f"{self._recalled} answered before, {self._failures} failed; "
            f"{self._tokens_per_second:,.0f} input tokens per second"
        )

    @property
    def _tokens_per_second(self) -> float:
        return self._tokens / max(time.monotonic() - self._start, 1e-9)


class CircuitBreaker:
    """Counts failures by kind, logs the first of each kind, and ends a run with too many failures in a row."""

    def __init__(self, total: int, has_answers: bool):
        # If all requests of a short run fail, the run also ends with the error.
        self._total = total
        self._limit = min(GIVE_UP, total)
        self._has_answers = has_answers
        self._kinds: Counter[Failure] = Counter()
        self._in_a_row = 0

    def add(
        self,
        name: str | None,
        answer: Answer,
        weight: int = 1,
    ) -> None:
        """Count the answer to an instance; a failure counts as `weight` failures in a row.

        Raises an `InputError` if further requests would fail, too.
        """
        kind = answer.failure
        if kind is None:
            self._in_a_row = 0
            self._has_answers = True
            return
        self._kinds[kind] += 1
        error = " ".join(str(answer.problem).split())
        # Every other request would fail for the same reason, so the run ends at the first failure.
        if kind.ends_run:
            raise InputError(f"the model cannot be asked: {error}")
        self._in_a_row += (
            0 if kind in _ABOUT_ONE_PROMPT and self._has_answers else weight
        )
        has_failed = not self._has_answers and self._kinds.total() >= self._total
        if self._in_a_row >= self._limit or has_failed:
            raise InputError(
                f"{describe_count(self._kinds.total(), 'request')} failed, the last ones"
                f" in a row: {error}"
            )
        if self._kinds[kind] == 1:
            helm_log.warning(
                f"request for {name} failed: {error}; further {kind.value} failures are"
                " only counted"
            )

    def rename(self, requests: int) -> None:
        """Count some bad requests as too long."""
        self._kinds[Failure.BAD_REQUEST] -= requests
        self._kinds[Failure.TOO_LONG] += requests
        self._kinds = +self._kinds

    def finish(self) -> None:
        """Log how many requests failed and why."""
        if self._kinds:
            helm_log.warning(
                "failed: "
                + ", ".join(
                    f"{number} {kind.value}"
                    for kind, number in self._kinds.most_common()
                )
            )


class _AnswerWarnings:
    """Counts answers that a reader of the scores must know of, and logs the first of each kind."""

    def __init__(self) -> None:
        self._answers = 0
        self._empty = 0
        self._in_reasoning = 0
        self._suspected = 0
        self._is_cutting = False
        self._counts: list[tuple[Sample, float]] = []

    def add(
        self,
        name: str | None,
        sample: Sample,
        answer: Answer,
    ) -> None:
        """Count an answer. Requests without one are not counted here."""
        if answer.failure is not None:
            return
        self._answers += 1
        self._empty += answer.is_empty
        self._in_reasoning += answer.is_only_in_reasoning
        self._suspected += answer.suspects_reasoning()
        usage = answer.usage
        if usage is None:
            return
        self._counts.append((sample, usage.counted_tokens))
        tokens = find_cut(sample, usage.counted_tokens)
        if tokens is not None and not self._is_cutting:
            self._is_cutting = True
            about = f"the server counts {usage.input_tokens:,} tokens of a prompt that has at least {tokens:,}"
            helm_log.warning(
                f"{name}: {about}, so it cuts prompts without an error; further cut"
                " prompts are only counted"
            )

    def finish(self) -> None:
        """Log how many answers of each kind there are."""
        if (limit := find_limit(self._counts)) is not None:
            helm_log.warning(
                f"the server counts {limit:,.0f} tokens of prompts of different"
                " lengths, so it cuts longer ones"
            )
        number = 0
        for sample, counted in self._counts:
            number += find_cut(sample, counted, limit) is not None
        if number:
            helm_log.warning(
                f"the server has cut {number} of {self._answers} prompts, so their"
                " scores do not compare"
            )
        if self._empty:
            helm_log.warning(f"{self._empty} of {self._answers} answers are empty")
        if self._in_reasoning:
            helm_log.warning(
                f"{self._in_reasoning} of {self._answers} answers have all their text"
                " in the reasoning field: the server's reasoning parser may be another"
                " model's; check the server with `helm-longctx doctor`"
            )
        if self._suspected:
            helm_log.warning(
                f"{self._suspected} of {self._answers} answers may contain reasoning:"
                " they begin with unknown marks"
            )
