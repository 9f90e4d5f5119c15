"""Sending a request through HELM's client of a deployment: how long it may take, and what is tried again."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

from helm.clients.client import Client
from helm.common.context import Context
from helm.common.local_context import LocalContext
from helm.common.request import Request
from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_exponential, wait_random

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, failure_of_error, label_error
from helm_longctx.judging.calls import limit_time
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.running.attempt import Attempt, attempt
from helm_longctx.running.client_logs import quiet_clients
from helm_longctx.settings import number_setting

TIMEOUT, DEFAULT_TIMEOUT = "HELM_LONGCTX_TIMEOUT", 1800.0
"""Seconds that a request may take, with all that is tried: a million tokens take minutes to read, and may queue."""

WAIT, DEFAULT_WAIT = "HELM_LONGCTX_WAIT", 5.0
"""Seconds before a request is sent for the second time; doubled before each further time."""

LONGEST_WAIT = 80.0
"""Seconds."""

TRIES = 6
"""How often a request is sent that fails for the time being; over as long a time as with HELM's own retries."""


class RunStoppedError(Exception):
    """The run has ended; nothing more is sent for it."""


class Sender:
    """Sends requests to one deployment, from several threads.

    HELM's own retries, which do not tell errors apart and take 150 seconds a request, are not used.

    Args:
        context: HELM's.
        deployment: a name that HELM knows.

    Attributes:
        limit: seconds that a request may take; None for a model in this process.

    Raises:
        InputError: the deployment's client cannot be made: a package or a key is missing, an argument is wrong.
    """

    def __init__(self, context: Context, deployment: str):
        self.limit: float | None = number_setting(TIMEOUT, DEFAULT_TIMEOUT)
        self._send, self._address = context.make_request, ""
        if isinstance(context, LocalContext):
            client = _client(context, deployment)
            self.limit = _time_limit(client, self.limit)
            self._send = limit_time(client, self.limit or DEFAULT_TIMEOUT).make_request
            self._address = redact(str(getattr(getattr(client, "client", None), "base_url", "")))
        self._stopped, self._has_answered = Event(), False
        first_wait = number_setting(WAIT, DEFAULT_WAIT)
        self._attempts = Retrying(
            stop=stop_after_attempt(TRIES),
            wait=wait_exponential(first_wait, LONGEST_WAIT) + wait_random(0, first_wait),
            sleep=self._sleep,
            retry=retry_if_result(self._may_succeed_later),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )

    def __call__(self, request: Request) -> Attempt:
        """The last attempt at a request.

        Raises:
            InputError: bad input of a client.
            RunStoppedError: `stop` was called.
        """
        return self._attempts(self._attempt, request)

    def stop(self) -> None:
        """Send nothing more, also not what waits for its next attempt."""
        self._stopped.set()

    def _attempt(self, request: Request) -> Attempt:
        with quiet_clients():
            made = attempt(self._send, request)
        if made.result.success:
            self._has_answered |= not made.result.cached
        else:
            made.result = replace(made.result, error=self._explained(made))
        return made

    def _explained(self, made: Attempt) -> str:
        """The error behind its kind, and with its cause, which clients leave out."""
        error = f"{made.result.error}{_cause(made.error)}"
        if failure_of(made.result) is not Failure.UNREACHABLE:
            return error
        if self._has_answered:  # such a server is about to start again
            return label_error(Failure.TEMPORARY, error.removeprefix(f"{Failure.UNREACHABLE.value}: "))
        return f"{error} at {self._address}" if self._address else error

    @staticmethod
    def _may_succeed_later(made: Attempt) -> bool:
        kind, flags = failure_of(made.result), made.result.error_flags
        is_final = flags is not None and flags.is_retriable is False
        return kind is not None and kind.is_retriable and not is_final

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise RunStoppedError


def _client(context: LocalContext, deployment: str) -> Client:
    try:
        return context.client._get_client(deployment)
    except InputError:
        raise
    except Exception as error:
        message = label_error(failure_of_error(error), abbreviate(redact(str(error))))
        raise InputError(f"{deployment} cannot be asked: {message}") from error


def _time_limit(client: Client, limit: float) -> float | None:
    """A deployment may allow more than the `limit` of the others; what runs here is as slow as the machine."""
    if any(base.__module__.startswith(_IN_PROCESS) for base in type(client).__mro__):
        return None
    own = getattr(getattr(client, "client", None), "timeout", None)
    return max(own, limit) if isinstance(own, int | float) else limit


_IN_PROCESS = ("helm.clients.huggingface_client", "helm_longctx.models")


def _cause(error: BaseException | None) -> str:
    """The first of the exceptions that led to this one, in brackets; empty if there is none."""
    cause = error and error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    return f" ({abbreviate(str(cause))})" if cause is not None and str(cause) else ""
