"""Asking a model: answers are kept as they come, failures counted, and how it goes is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import GeneratedOutput, Request, RequestResult
from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.redaction.text import redacted
from helm_longctx.running.attempt import attempt
from helm_longctx.running.journal import Journal
from helm_longctx.running.lean import short

GIVE_UP = 10
"""Failures after which a run in which nothing was ever answered ends: the model cannot be reached."""

LOG_EVERY = 60.0
"""Seconds between two lines of progress in the log, where there is no terminal."""

Ask = Callable[[Request], RequestResult]


def ask_all(states: Iterable[RequestState], asking: Asking, parallelism: int) -> list[RequestState]:
    """The states with their results, in the same order."""
    with ThreadPoolExecutor(parallelism) as pool:
        return list(pool.map(asking, states))


class Asking:
    """Asks for one request state at a time; for use from several threads.

    Args:
        ask: what sends a request.
        prompt_of: the whole prompt of a state, whose own may be elided.
        journal: what was answered before a crash, and where answers are kept.
        total: requests.
    """

    def __init__(self, ask: Ask, prompt_of: Callable[[RequestState], str], journal: Journal, total: int):
        self._ask, self._prompt_of, self._journal = ask, prompt_of, journal
        self._progress = Progress(total)

    def __call__(self, state: RequestState) -> RequestState:
        """The state with its result.

        Raises:
            InputError: bad input of a client, or nothing was answered at all.
        """
        name = self._journal.name(state.request, state.instance.extra_data["full_prompt"]["sha256"])
        if known := self._journal.get(name):
            self._progress.known()
            return replace(state, result=known)
        request = replace(state.request, prompt=self._prompt_of(state))
        result = self._answer(name, request)
        if not result.success:
            hwarn(f"request for {state.instance.id} failed: {result.error}")
        self._progress.asked(_tokens(state, request.prompt), result)
        return replace(state, result=result)

    def finish(self) -> int:
        """Log the totals; how many requests failed."""
        return self._progress.finish()

    def _answer(self, name: str, request: Request) -> RequestResult:
        """An answer, which the journal and then the cache keep, or a failure, which neither does."""
        made = attempt(self._ask, request)
        if not made.result.success:
            return _failed(made.result.error or "")
        self._journal.add(name, made.result)
        made.keep_replies()
        return made.result


class Progress:
    """Counts requests, and shows them with the time left: on a terminal as a bar, else in the log."""

    def __init__(self, total: int):
        self._total, self._bar = total, tqdm(total=total, unit="request", disable=None)
        self._lock = Lock()
        self._start = self._told = time.monotonic()
        self._answered = self._known = self._cached = self._failed = self._tokens = 0

    def known(self) -> None:
        """A request was answered before."""
        with self._lock:
            self._known += 1
            self._bar.update()

    def asked(self, tokens: int, result: RequestResult) -> None:
        """A request came back.

        Raises:
            InputError: none was ever answered, and enough have failed.
        """
        with self._lock:
            self._tokens += tokens
            self._answered += result.success
            self._cached += result.success and result.cached
            self._failed += not result.success
            self._bar.set_postfix({"tokens/s": f"{self._speed:,.0f}", "failed": self._failed}, refresh=False)
            self._bar.update()
            self._log()
            if self._failed >= min(GIVE_UP, self._total) and not self._answered + self._known:
                raise InputError(f"no request was answered, {self._failed} failed; the last: {result.error}")

    def finish(self) -> int:
        """Close the bar and log the totals; how many requests failed."""
        self._bar.close()
        hlog(
            f"{self._answered} requests answered, {self._cached} of them from the request cache, "
            f"{self._known} before, {self._failed} failed; "
            f"{self._speed:,.0f} input tokens per second"
        )
        return self._failed

    def _log(self) -> None:
        now = time.monotonic()
        if not self._bar.disable or now - self._told < LOG_EVERY:
            return
        self._told = now
        asked = self._answered + self._failed
        left = (self._total - self._known - asked) * (now - self._start) / asked
        hlog(
            f"{self._known + asked} of {self._total} requests, {self._failed} failed, "
            f"{self._speed:,.0f} input tokens per second, {tqdm.format_interval(left)} left"
        )

    @property
    def _speed(self) -> float:
        return self._tokens / max(time.monotonic() - self._start, 1e-9)


def _tokens(state: RequestState, prompt: str) -> int:
    """Of the prompt as it was counted; else an estimate."""
    extra = state.instance.extra_data or {}
    return extra.get("prompt_tokens") or extra.get("input_tokens") or len(prompt) // 4


def _failed(error: str) -> RequestResult:
    """As HELM has requests that failed without harm: one empty completion, which its pages can show."""
    nothing = GeneratedOutput(text="", logprob=0, tokens=[])
    return RequestResult(success=False, embedding=[], completions=[nothing], cached=False, error=short(redacted(error)))
