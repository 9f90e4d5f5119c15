"""Asking a model: answers are kept as they come, failures counted, and how it goes is shown."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.hierarchical_logger import hlog
from helm.common.request import GeneratedOutput, Request, RequestResult
from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, label_error
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.running.breaker import Breaker
from helm_longctx.running.calls import Calls
from helm_longctx.running.sending import TIMEOUT, Sender
from helm_longctx.runs.journal import Journal

LATE = 5
"""Failures that a request counts for which had no answer within its time: it has cost that time."""

LOG_EVERY = 60.0
"""Seconds between two lines of progress in the log, where there is no terminal."""

SETTLE = 10.0
"""Seconds in which requests in flight may still be answered, and their answers kept, when a run ends early."""


def ask_all(states: Sequence[RequestState], asking: Asking, parallelism: int) -> list[RequestState]:
    """The states with their results, in the same order.

    The first request goes alone: a wrong address, key or model ends the run before the others are sent.

    Raises:
        InputError: bad input of a client, or the model cannot be asked; the message says what is kept.
    """
    results = {number: known for number, state in enumerate(states) if (known := asking.recall(state))}
    waiting = deque(number for number in range(len(states)) if number not in results)
    calls, width = Calls(asking, asking.sender.limit), 1
    try:
        while waiting or calls:
            while waiting and len(calls) < width:
                calls.start(number := waiting.popleft(), states[number])
            for number, call in calls.wait():
                results[number] = asking.count(states[number], call)
                width = parallelism
            asking.progress.show(len(calls), calls.longest)
    except InputError as error:
        asking.sender.stop()
        calls.settle(SETTLE)
        raise InputError(f"{error}; {asking.journal.summary()}") from error
    finally:
        asking.sender.stop()
        asking.progress.close()
    return [results[number] for number in range(len(states))]


class Asking:
    """Asks for one request state at a time; for use from several threads.

    Args:
        sender: what sends a request.
        whole_request: the request of a state with all that it asks; its own may be elided.
        journal: what was answered before a crash, and where answers are kept.
        total: requests.

    Attributes:
        sender, journal: the same.
        progress: what the user sees.
    """

    def __init__(self, sender: Sender, whole_request: Callable[[RequestState], Request], journal: Journal, total: int):
        self.sender, self._whole_request, self.journal = sender, whole_request, journal
        self.progress = Progress(total)
        self._breaker = Breaker(total, bool(journal))

    def recall(self, state: RequestState) -> RequestState | None:
        """The state with the result that it had before; None if it has to be asked."""
        known = self.journal.get(self._name(state))
        if known is None:
            return None
        self.progress.recall()
        return replace(state, result=known)

    def __call__(self, state: RequestState) -> RequestState:
        """The state with its result; an answer is on disk when this returns.

        Raises:
            InputError: bad input of a client.
        """
        made = self.sender(self._whole_request(state))
        if not made.result.success:
            return replace(state, result=_failed(made.result.error or ""))
        self.journal.add(self._name(state), made.result)
        made.keep_replies()
        return replace(state, result=made.result)

    def count(self, state: RequestState, call: Future[RequestState] | None) -> RequestState:
        """The state with what came of asking for it, a call that is over, or None for one that took too long.

        Raises:
            InputError: as `Breaker.add`, or bad input of a client.
        """
        result = call.result().result if call else _failed(label_error(Failure.TEMPORARY, self._lateness))
        self.progress.count(_tokens(state), result)
        self._breaker.add(state.instance.id, result, weight=1 if call else LATE)
        return replace(state, result=result)

    @property
    def _lateness(self) -> str:
        return f"no answer within {self.sender.limit:g} seconds ({TIMEOUT} sets them)"

    def finish(self) -> int:
        """Log the totals; how many requests failed."""
        self.progress.finish()
        return self._breaker.finish()

    def _name(self, state: RequestState) -> str:
        return self.journal.name(state.request, state.instance.extra_data["full_prompt"]["sha256"])


class Progress:
    """Counts requests, and shows them with what is in flight and the time left: a bar on a terminal, else log lines.

    It is for one thread, which calls `show` every second or so, whether requests come back or not.
    """

    def __init__(self, total: int):
        self._total, self._bar = total, tqdm(total=total, unit="request", disable=None)
        self._start = self._shown = time.monotonic()
        self._answered = self._known = self._cached = self._failed = self._tokens = 0

    def recall(self) -> None:
        """A request was answered before."""
        self._known += 1
        self._bar.update()

    def count(self, tokens: int, result: RequestResult) -> None:
        """A request came back."""
        self._tokens += tokens
        self._answered += result.success
        self._cached += result.success and result.cached
        self._failed += not result.success
        self._bar.update()

    def show(self, in_flight: int, longest: float) -> None:
        """Show how it goes, if it is time to.

        Args:
            in_flight: requests that were sent and have not come back.
            longest: seconds since the oldest of them was sent.
        """
        now = time.monotonic()
        if now - self._shown < (LOG_EVERY if self._bar.disable else 1):
            return
        self._shown = now
        speed = f"{self._speed:,.0f} input tokens per second"
        waiting = f"{in_flight} in flight, the oldest for {tqdm.format_interval(longest)}"
        if self._bar.disable:
            asked = self._answered + self._failed
            left = (self._total - self._known - asked) * (now - self._start) / max(asked, 1)
            left_text = f"{tqdm.format_interval(left)} left" if asked else "none answered yet"
            counts = f"{self._known + asked} of {self._total} requests, {self._failed} failed"
            hlog(f"{counts}, {speed}, {left_text}; {waiting}")
        else:
            self._bar.set_postfix_str(f"tokens/s={self._speed:,.0f}, failed={self._failed}, {waiting}")

    def close(self) -> None:
        """Leave the terminal to others."""
        self._bar.close()

    def finish(self) -> None:
        """Log the totals."""
        hlog(
            f"{self._answered} requests answered, {self._cached} of them from the request cache, "
            f"{self._known} before, {self._failed} failed; "
            f"{self._speed:,.0f} input tokens per second"
        )

    @property
    def _speed(self) -> float:
        return self._tokens / max(time.monotonic() - self._start, 1e-9)


def _tokens(state: RequestState) -> int:
    """Of the prompt as it was counted; else an estimate."""
    extra = state.instance.extra_data
    return extra.get("prompt_tokens") or extra.get("input_tokens") or extra["full_prompt"]["characters"] // 4


def _failed(error: str) -> RequestResult:
    """As HELM has requests that failed without harm: one empty completion, which its pages can show."""
    nothing = GeneratedOutput(text="", logprob=0, tokens=[])
    return RequestResult(
        success=False, embedding=[], completions=[nothing], cached=False, error=abbreviate(redact(error))
    )
