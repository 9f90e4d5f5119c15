"""Sends requests of models and judges through HELM's clients, with a time limit, and again if they fail temporarily."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from helm.clients.client import Client
from helm.common.context import Context
from helm.common.request import Request
from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_exponential, wait_random

from helm_longctx.failures import Failure, failure_of, label_error
from helm_longctx.models.apis.attempt import Attempt, try_once
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.redaction.text import redact

LONGEST_WAIT = 80.0
"""Largest number of seconds between two attempts."""


class RunStoppedError(Exception):
    """The run has ended; no further request is sent."""


@dataclass(frozen=True)
class Retries:
    """How often and after what a request is sent again.

    Args:
        tries: number of attempts.
        first_wait: seconds before the second attempt; doubled before each further one.
        takes_any_reply: whether every reply that a client stores ends the attempts, even one that is no answer. A
            refusal or a malformed response for which a client of HELM's stores nothing counts as a temporary failure.
    """

    tries: int
    first_wait: float
    takes_any_reply: bool = False

    def may_help(self, attempt: Attempt) -> bool:
        """Return whether the request of an attempt may succeed if it is sent again."""
        kind, flags = failure_of(attempt.result), attempt.result.error_flags
        if self.takes_any_reply and attempt.has_reply:
            return False
        if self.takes_any_reply and kind in (Failure.MALFORMED, Failure.REFUSED):
            return not attempt.has_sure_error
        # HELM's clients mark errors that they know to be permanent.
        is_final = flags is not None and flags.is_retriable is False
        return kind is not None and kind.is_retriable and not is_final


class Sender:
    """Sends requests to one model or judge. Several threads may call it.

    HELM's own retries are not used: they treat all errors alike and take 150 seconds for each request.

    Args:
        client: HELM's client of a deployment, or HELM's context for a remote server.
        retries: how often and after what a request is sent again.
        limit: seconds that a request may take; None for a model in this process.

    Attributes:
        limit: the argument.
        caches_prompts: whether the provider reuses beginnings of prompts that it has read, or sells them cheaper.
        takes_facts: whether the client is a function of the calling program, which gets facts about each prompt.
    """

    def __init__(self, client: Client | Context, retries: Retries, limit: float | None = None):
        self.limit, self._send = limit, client.make_request
        self.caches_prompts = getattr(client, "caches_prompts", False)
        self.takes_facts = getattr(client, "takes_facts", False)
        self._address = redact(str(getattr(getattr(client, "client", None), "base_url", "")))
        self._stopped, self._has_answered = Event(), False
        self._attempts = Retrying(
            stop=stop_after_attempt(retries.tries),
            wait=wait_exponential(retries.first_wait, LONGEST_WAIT) + wait_random(0, retries.first_wait),
            sleep=self._sleep,
            retry=retry_if_result(retries.may_help),
            # After the last attempt the failure is the result, instead of tenacity's own error.
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )

    def __call__(self, request: Request) -> Attempt:
        """Send a request, again if it fails temporarily, and return the last attempt.

        Raises:
            InputError: a client got bad input.
            RunStoppedError: `stop` was called.
        """
        return self._attempts(self._attempt, request)

    def stop(self) -> None:
        """Send no further requests, including those that wait for their next attempt."""
        self._stopped.set()

    def _attempt(self, request: Request) -> Attempt:
        if self._stopped.is_set():
            raise RunStoppedError
        with quiet_clients():
            attempt = try_once(self._send, request)
        if attempt.result.success:
            # A reply from the request cache does not prove that the server runs.
            self._has_answered |= not attempt.result.cached
        else:
            attempt.result = replace(attempt.result, error=self._explain(attempt))
        return attempt

    def _explain(self, attempt: Attempt) -> str:
        """Return the error with its cause, which HELM's clients omit."""
        error, cause = str(attempt.result.error), _cause(attempt.error)
        error += "" if cause[2:-1] in error else cause
        if failure_of(attempt.result) is not Failure.UNREACHABLE:
            return error
        if self._has_answered:  # a server that has answered before is probably restarting
            return label_error(Failure.TEMPORARY, error.removeprefix(f"{Failure.UNREACHABLE.value}: "))
        return f"{error} at {self._address}" if self._address else error

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise RunStoppedError


def limit_time(client: Client, seconds: float) -> Client:
    """Make the provider's library in a HELM client give up after `seconds`, and return the client.

    A `timeout` in the deployment stays as it is, and so does the library's limit on connecting if it is shorter.
    """
    library = getattr(client, "client", None)
    default = getattr(library, "timeout", 0)
    # The timeout of a deployment is a number; the default of a library is an object with several limits.
    if library is not None and not isinstance(default, int | float | None):
        timeout = type(default)(seconds, connect=min(seconds, default.connect or seconds))
        client.client = library.with_options(timeout=timeout)
    return client


def _cause(error: BaseException | None) -> str:
    """Return the root cause of an exception, in brackets; empty if there is none."""
    cause = error and error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    return f" ({describe_error(cause)})" if cause is not None and str(cause) else ""


_PACKAGE = str(Path(__file__).parents[1])
_helm = logging.getLogger("helm")
_is_sending: ContextVar[bool] = ContextVar("is_sending", default=False)


@contextmanager
def quiet_clients() -> Iterator[None]:
    """Keep tracebacks of HELM's clients out of the log, and log each of their other messages only once.

    The errors are in the results of the requests and are logged by kind. At level DEBUG everything is logged.
    """
    # Adding the filter again has no effect. It is never removed, because other threads may be sending.
    _helm.addFilter(_filter)
    token = _is_sending.set(True)
    try:
        yield
    finally:
        _is_sending.reset(token)


class _ClientFilter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._places: set[tuple[str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        is_ours = record.pathname.startswith(_PACKAGE)
        if is_ours or not _is_sending.get() or _helm.isEnabledFor(logging.DEBUG):
            return True
        place = record.pathname, record.lineno
        is_new = place not in self._places
        self._places.add(place)
        # If a secret was removed from a traceback, the record has the traceback only as text.
        return is_new and not (record.exc_info or record.exc_text)


_filter = _ClientFilter()
