"""Asks a model for all answers of a run: sends the requests from several threads, and journals each answer at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.hierarchical_logger import hlog
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.environment import TIMEOUT
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, label_error
from helm_longctx.models.apis.caching import with_beginning
from helm_longctx.models.apis.sending import Sender
from helm_longctx.models.objects import PromptFacts, with_facts
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.redaction.text import redact
from helm_longctx.runner.follow_up import follow_up, join_answers
from helm_longctx.runner.memory import Memory
from helm_longctx.runner.prefixes import CHARACTERS, Beginning, Schedule
from helm_longctx.runner.progress import Breaker, Oddities, Outcome, Progress
from helm_longctx.runner.resuming import find_answer
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.runner.threads import Calls
from helm_longctx.runs.conversation import request_text
from helm_longctx.runs.journal import Journal

SETTLE = 10.0
"""Seconds to wait for requests in flight when a run ends early, so that their answers are kept."""

LATE = 5
"""A request that exceeds the time limit counts as this many failures, because it costs so much time."""


class PendingRequest(NamedTuple):
    """A request, and the beginning that its prompt shares with others; None if the provider cannot use that.

    Args:
        in_batch: whether the others are in a batch.
    """

    request: StoredRequest
    beginning: Beginning | None = None
    in_batch: bool = False


def ask_all(pending: Sequence[PendingRequest], asking: Asking, parallelism: int) -> list[RequestState]:
    """Return the states with their results, in the same order.

    The first request is sent alone, so that a wrong address, key or model ends the run before others are sent. The
    first request of those that share a beginning is also sent alone, so that the others find it in the provider's
    cache.

    Raises:
        InputError: a client got bad input, the model cannot be asked, or a limit is reached. The message says which
            answers are kept.
    """
    results = {number: answered for number, each in enumerate(pending) if (answered := asking.recall(each.request))}
    groups = [each.beginning and each.beginning.group for each in pending]
    schedule = Schedule(groups, (number for number in range(len(pending)) if number not in results))
    calls, width = Calls(asking, asking.limit), 1
    try:
        while schedule or calls:
            while len(calls) < width and (number := schedule.peek()) is not None:
                # There is no room below the cost limit now, but calls in flight may cost less than is reserved for
                # them.
                if not asking.reserve(number, pending[number].request, len(calls)):
                    break
                calls.start(schedule.take(), pending[number])
            for number, call in calls.wait():
                results[number], is_answered = asking.count(number, pending[number].request, call)
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
    return [results[number] for number in range(len(pending))]


class Asking:
    """Asks for the answer to one request. Several threads may call it; its methods are for one thread.

    Args:
        journal: has the answers from before a crash, and gets the new ones.
        spending: adds up the costs.
    """

    def __init__(self, sender: Sender, journal: Journal, spending: Spending, total: int):
        self.sender, self.journal = sender, journal
        self.spending, self.progress, self._memory = spending, Progress(total), Memory()
        self._breaker, self._odd = Breaker(total, bool(journal)), Oddities()

    @property
    def limit(self) -> float | None:
        """Seconds that a call may take; None for no limit."""
        return self.sender.limit

    def reserve(self, number: int, asked: StoredRequest, in_flight: int) -> bool:
        """Reserve the highest cost of a request if there is room for it; see `Spending.reserve`."""
        return self.spending.reserve(number, asked, in_flight)

    def settle(self, number: int, outcome: Outcome, is_late: bool) -> None:
        """Count the real cost of a request; see `Spending.settle`."""
        self.spending.settle(number, outcome, is_late)

    def recall(self, asked: StoredRequest) -> RequestState | None:
        """Return the state of a request with its result from an earlier run or the journal; None if there is none."""
        result = find_answer(asked, self.journal)
        if result is None:
            return None
        self.progress.recall()
        return replace(asked.state, result=result)

    def __call__(self, pending: PendingRequest) -> RequestResult:
        """Return the result of a request, and of the one that follows it, if there is one.

        Each answer is on disk when this returns.

        Raises:
            InputError: a client got bad input.
        """
        asked, shared = pending.request, pending.beginning.characters if pending.beginning else 0

        # A function makes the request, so that an answer in the journal needs no look-up of the whole prompt.
        def make_request() -> Request:
            if self.sender.takes_facts:
                return with_facts(asked.whole(), find_facts(asked))
            return with_beginning(asked.whole(), shared, pending.in_batch)

        first = asked.first or self._ask(self.journal.name(asked.request, asked.digest), make_request)
        second = follow_up(asked.request, asked.sample, first)
        if second is None:
            return first

        def make_second() -> Request:
            return with_facts(second, replace(find_facts(asked), rest=None)) if self.sender.takes_facts else second

        name = self.journal.name(second, digest(request_text(second)))
        return join_answers(first, self._ask(name, make_second))

    def _ask(self, name: str, make_request: Callable[[], Request]) -> RequestResult:
        """Return the answer that the journal has, or else send the request."""
        if answer := self.journal.get(name):
            return answer
        attempt = self.sender(make_request())
        if not attempt.result.success:
            return make_failure(attempt.result.error or "")
        self.journal.add(name, attempt.result)
        # The cache is written last, so that all its replies have their answers in the journal.
        attempt.cache_replies()
        return attempt.result

    def count(self, number: int, asked: StoredRequest, call: Future[RequestResult] | None) -> tuple[RequestState, bool]:
        """Count the outcome of a call. Return the state of the request with its result, and whether that is an answer.

        Raises an `InputError` if further requests would fail, too, or a client got bad input.
        """
        result = call.result() if call else self.late_failure()
        sample = asked.sample
        tokens = sample.prompt_tokens or sample.input_tokens or asked.characters // CHARACTERS
        self.progress.count(tokens, result)
        self._memory.release(tokens)
        outcome = Outcome.of(result)
        self.settle(number, outcome, is_late=call is None)
        # A late call blocks a thread for the whole time limit.
        self._breaker.add(asked.state.instance.id, outcome, weight=1 if call else LATE)
        self._odd.add(asked.state.instance.id, sample, outcome)
        return replace(asked.state, result=result), outcome.failure is None

    def late_failure(self) -> RequestResult:
        """Return the failure of a request that took too long."""
        text = f"no answer within {self.sender.limit:g} seconds ({TIMEOUT} sets the limit)"
        return make_failure(label_error(Failure.TEMPORARY, text))

    def finish(self) -> int:
        """Log the totals, and return how many requests failed."""
        self.progress.finish()
        self._odd.finish()
        if summary := self.spending.summary():
            hlog(summary)
        return self._breaker.finish()


def find_facts(asked: StoredRequest) -> PromptFacts:
    """Return what is known of the prompt of a request."""
    sample, instance = asked.sample, asked.state.instance
    return PromptFacts(str(instance.id), str(instance.sub_split or ""), sample.length, sample.depth, sample.rest)


def make_failure(error: str) -> RequestResult:
    """Make the result of a failed request. It has one empty completion, without which HELM's pages cannot show it."""
    nothing = GeneratedOutput(text="", logprob=0, tokens=[])
    return RequestResult(success=False, embedding=[], completions=[nothing], cached=False, error=redact(error))
