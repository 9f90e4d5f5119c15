"""Sends a request through HELM's client for a deployment, with a time limit and retries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from threading import Event

from helm.clients.client import Client
from helm.common.context import Context
from helm.common.local_context import LocalContext
from helm.common.request import Request
from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_exponential, wait_random

from helm_longctx.environment import DEFAULT_TIMEOUT, number_setting, request_timeout
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, failure_of_error, label_error
from helm_longctx.judging.calls import limit_time
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.running.attempt import Attempt, try_once

WAIT, DEFAULT_WAIT = "HELM_LONGCTX_WAIT", 5.0
"""Seconds before the second attempt; doubled before each further one."""

LONGEST_WAIT = 80.0
"""Largest number of seconds between two attempts."""

TRIES, DEFAULT_TRIES = "HELM_LONGCTX_TRIES", 6
"""Number of attempts at a request that fails temporarily. By default they take as long as HELM's own retries."""

_IN_PROCESS = ("helm.clients.huggingface_client", "helm_longctx.models")
"""Modules of clients whose model runs in this process."""


class RunStoppedError(Exception):
    """The run has ended; no further request is sent."""


class Sender:
    """Sends requests to one deployment. Several threads may call it.

    HELM's own retries are not used: they treat all errors alike and take 150 seconds for each request.

    Args:
        context: HELM's context.
        deployment: name of a deployment that is registered in HELM.

    Attributes:
        limit: seconds that a request may take; None for a model in this process.
        caches_prompts: whether the provider reuses beginnings of prompts that it has read, or sells them cheaper.

    Raises:
        InputError: the deployment's client cannot be made: a package or a key is missing, or an argument is wrong.
    """

    def __init__(self, context: Context, deployment: str):
        self.limit: float | None = request_timeout()
        self._send, self._address, self.caches_prompts = context.make_request, "", False
        # A remote context sends requests to a HELM server, which makes the clients.
        if isinstance(context, LocalContext):
            client = find_client(context, deployment)
            self.limit = _time_limit(client, self.limit)
            self.caches_prompts = getattr(client, "caches_prompts", False)
            self._send = limit_time(client, self.limit or DEFAULT_TIMEOUT).make_request
            self._address = redact(str(getattr(getattr(client, "client", None), "base_url", "")))
        self._stopped, self._has_answered = Event(), False
        first_wait = number_setting(WAIT, DEFAULT_WAIT)
        self._attempts = Retrying(
            stop=stop_after_attempt(int(number_setting(TRIES, DEFAULT_TRIES, whole=True))),
            wait=wait_exponential(first_wait, LONGEST_WAIT) + wait_random(0, first_wait),
            sleep=self._sleep,
            retry=retry_if_result(self._may_succeed_later),
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
        error = f"{attempt.result.error}{_cause(attempt.error)}"
        if failure_of(attempt.result) is not Failure.UNREACHABLE:
            return error
        if self._has_answered:  # a server that has answered before is probably restarting
            return label_error(Failure.TEMPORARY, error.removeprefix(f"{Failure.UNREACHABLE.value}: "))
        return f"{error} at {self._address}" if self._address else error

    @staticmethod
    def _may_succeed_later(attempt: Attempt) -> bool:
        kind, flags = failure_of(attempt.result), attempt.result.error_flags
        # HELM's clients mark errors that they know to be permanent.
        is_final = flags is not None and flags.is_retriable is False
        return kind is not None and kind.is_retriable and not is_final

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise RunStoppedError


def find_client(context: LocalContext, deployment: str) -> Client:
    """Return HELM's client of a deployment.

    Raises:
        InputError: the client cannot be made: a package or a key is missing, or an argument is wrong.
    """
    try:
        # HELM has no public method to make a client without a request.
        return context.client._get_client(deployment)
    except InputError:
        raise
    except Exception as error:
        message = label_error(failure_of_error(error), abbreviate(redact(str(error))))
        raise InputError(f"{deployment} cannot be asked: {message}") from error


def _time_limit(client: Client, limit: float) -> float | None:
    """Return a deployment's own timeout if it is longer than `limit`; None for a model in this process."""
    if any(base.__module__.startswith(_IN_PROCESS) for base in type(client).__mro__):
        return None
    own = getattr(getattr(client, "client", None), "timeout", None)
    return max(own, limit) if isinstance(own, int | float) else limit


def _cause(error: BaseException | None) -> str:
    """Return the root cause of an exception, in brackets; empty if there is none."""
    cause = error and error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    return f" ({abbreviate(str(cause))})" if cause is not None and str(cause) else ""


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
