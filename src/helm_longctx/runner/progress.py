"""Counts the requests of a run and shows progress, and decides when failures end the run."""

import sys
import time
from collections import Counter
from typing import NamedTuple

from helm.common.hierarchical_logger import hlog, hwarn
from helm.common.request import RequestResult
from tqdm import tqdm

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of
from helm_longctx.models.apis.usage import Usage, is_empty, usage_of
from helm_longctx.tasks.prompt_cuts import find_cut, find_limit
from helm_longctx.tasks.sample import Sample

LOG_EVERY = 60.0
"""Seconds between two progress lines in the log, if there is no terminal."""

GIVE_UP = 10
"""Number of failures in a row that ends a run, because the server no longer answers."""

_ABOUT_ONE_PROMPT = (Failure.TOO_LONG, Failure.REFUSED)
"""Failures that say nothing about other requests, once the model has answered a request."""


class Outcome(NamedTuple):
    """The result of a request, with why it is no answer and the tokens that the provider counted (None: neither)."""

    result: RequestResult
    failure: Failure | None
    usage: Usage | None

    @classmethod
    def of(cls, result: RequestResult) -> "Outcome":
        """Read a result once, for all that count it."""
        return cls(result, failure_of(result), usage_of(result))


class Progress:
    """Counts requests and shows progress, on a terminal or in a notebook as a bar and otherwise as log lines.

    Only one thread may use it. It calls `show` about every second, even if no request has come back.
    """

    def __init__(self, total: int):
        # With `disable=None` there is no bar if there is no terminal. A notebook has none, but shows bars.
        self._total = total
        self._bar = tqdm(total=total, unit="request", disable=False if "ipykernel" in sys.modules else None)
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


class Breaker:
    """Counts failures by kind, logs the first of each kind, and ends a run with too many failures in a row."""

    def __init__(self, total: int, has_answers: bool):
        # If all requests of a short run fail, the run also ends with the error.
        self._limit, self._has_answers = min(GIVE_UP, total), has_answers
        self._kinds: Counter[Failure] = Counter()
        self._in_a_row = 0

    def add(self, name: str | None, outcome: Outcome, weight: int = 1) -> None:
        """Count the outcome of a request.

        Args:
            name: the instance's, for the log.
            weight: how many failures a failure counts as.

        Raises:
            InputError: further requests would fail, too.
        """
        kind = outcome.failure
        if kind is None:
            self._in_a_row, self._has_answers = 0, True
            return
        self._kinds[kind] += 1
        error = " ".join((outcome.result.error or "").split())
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


class Oddities:
    """Counts answers that a reader of the scores must know of, and logs the first of each kind."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._answers = 0
        self._counts: list[tuple[Sample, float]] = []

    def add(self, name: str | None, sample: Sample, outcome: Outcome) -> None:
        """Count the outcome of a request."""
        if outcome.failure is not None:
            return
        self._answers += 1
        self._kinds["empty"] += is_empty(outcome.result)
        if (usage := outcome.usage) is None:
            return
        self._counts.append((sample, usage.counted_tokens))
        if (tokens := find_cut(sample, usage.counted_tokens)) is None:
            return
        self._kinds["cut"] += 1
        if self._kinds["cut"] == 1:
            about = f"the server counts {usage.input_tokens:,} tokens of a prompt that has at least {tokens:,}"
            hwarn(f"{name}: {about}, so it cuts prompts without an error; further cut prompts are only counted")

    def finish(self) -> None:
        """Log how many answers of each kind there are."""
        limit = find_limit(self._counts)
        if limit is not None:
            hwarn(f"the server counts {limit:,.0f} tokens of prompts of different lengths, so it cuts longer ones")
        if number := sum(find_cut(*each, limit) is not None for each in self._counts):
            hwarn(f"the server has cut {number} of {self._answers} prompts, so their scores do not compare")
        if number := self._kinds["empty"]:
            hwarn(f"{number} of {self._answers} answers are empty")
