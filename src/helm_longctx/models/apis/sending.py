"""Sends requests of models and judges through HELM's clients, with a time limit, and again if they fail temporarily.

HELM's clients cache a reply before they parse it, so a reply that cannot be parsed would stay in the cache. An
`Attempt` keeps the replies until they can be cached.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from helm.common.key_value_store import request_to_key
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from helm_longctx.data.download import retry_after
from helm_longctx.errors import InputError, NotKeptError
from helm_longctx.failures import (
    Ending,
    Failure,
    FailureError,
    add_advice,
    describe_reason,
    ending_of,
    failure_of_error,
    failure_of_reason,
    failure_of_text,
    http_status,
    list_causes,
)
from helm_longctx.helm_api import (
    Client,
    Context,
    ErrorFlags,
    GeneratedOutput,
    Request,
    RequestResult,
)
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.calls import TICK, CancelledError, is_cancelled
from helm_longctx.models.apis.protocol import cut_reply
from helm_longctx.models.results import add_facts, facts_of, failure_of, make_failure
from helm_longctx.redaction.abbreviation import abbreviate, describe_error
from helm_longctx.redaction.text import redact
from helm_longctx.run_settings import settings_in_use

_RawReply = Mapping[str, Any]
"""The provider's reply as JSON before the client parses it. Clients cache it in this form."""

OpensStore = Callable[[], AbstractContextManager[Any]]
store_watch: ContextVar[
    Callable[[OpensStore, str], AbstractContextManager[Any]] | None
] = ContextVar("store_watch", default=None)
"""Set during an attempt: (function that opens a store, the store's name) → the store for the client. HELM's caches use
it when the patches of HELM are applied."""


class Attempt:
    """One try of a request: its replies until they can be cached, and facts that HELM's clients omit from results.

    Attributes:
        result: an answer, or a failure with its kind.
        outcome: what the client returned or raised.
        replies: raw replies from the server or the cache.
        error: the exception of the last request to the server, with its causes; HELM's clients report only its text.
        held: replies that are not in the cache yet, as (function that opens the store, key, value).
    """

    result: RequestResult
    outcome: RequestResult | Exception

    def __init__(self) -> None:
        self.replies: list[_RawReply] = []
        self.error: Exception | None = None
        self.held: dict[str, tuple[OpensStore, Mapping[str, Any], dict[str, Any]]] = {}

    def keep_replies(self) -> None:
        """Write the replies to the cache, which alone has them. With our cache they are on disk afterwards.

        Raises:
            NotKeptError: the disk is full, or the file of the cache cannot be used.
        """
        for open_store, key, value in self.held.values():
            with open_store() as store:
                # HELM's own caches say nothing of failures.
                put = getattr(store, "put_durably", store.put)
                try:
                    put(key, value)
                except InputError as error:
                    raise NotKeptError(f"a reply cannot be kept: {error}") from error
        self.held.clear()

    def cache_replies(self) -> None:
        """Write the replies to the cache. A failure is only logged, because the answer is in the journal."""
        for open_store, key, value in self.held.values():
            try:
                with open_store() as store:
                    store.put(key, value)
            except Exception as error:
                helm_log.warning(
                    f"an answer is not in the request cache ({type(error).__name__}:"
                    f" {error}); the run continues"
                )
        self.held.clear()

    @property
    def has_reply(self) -> bool:
        """Whether a reply has arrived, or came from the cache, even if it is no answer."""
        return bool(self.replies) or (
            isinstance(self.outcome, RequestResult) and self.outcome.success
        )

    def check(self, outcome: RequestResult | Exception) -> RequestResult:
        """Return the outcome if it is an answer, or else a failure with the reason."""
        self.outcome = outcome
        kind = self._failure(outcome)
        if kind is None and isinstance(outcome, RequestResult):
            return outcome
        is_text = isinstance(outcome, RequestResult) and outcome.success
        # The reason of the failure has no secrets and no prompts.
        if is_text and (reason := self._find_bad_reason(outcome)) is not None:
            text = redact(describe_reason(reason))
        elif self.error is None and (
            defect := next(filter(None, map(_find_defect, self.replies)), None)
        ):
            text = abbreviate(redact(defect))
        elif isinstance(outcome, Exception):
            text = f"{type(outcome).__name__}: {describe_error(outcome)}"
        else:
            text = abbreviate(redact(outcome.error or "no completion"))
        if kind is Failure.BAD_REQUEST and cut_reply(text) is not None:
            nothing = GeneratedOutput(
                text="",
                logprob=0,
                tokens=[],
            )
            cut = replace(nothing, finish_reason={"reason": Ending.CUT.value})
            return RequestResult(True, [], [cut], False)
        if self._long_wait:
            text += f"; the server allows the next request in {self._long_wait:,.0f} seconds"
        failed = make_failure(kind or Failure.UNKNOWN, text)
        if not isinstance(outcome, RequestResult):
            return replace(failed, error_flags=None)
        # A client's own flags say whether the failure is final.
        return replace(
            failed,
            error_flags=outcome.error_flags,
            request_time=outcome.request_time,
            request_datetime=outcome.request_datetime,
        )

    @property
    def _long_wait(self) -> float | None:
        """The seconds for which the server asks to wait, if they are more than a request may take."""
        if self.error is None:
            seconds = None
        else:
            seconds = retry_after(self.error)
        if seconds is not None and seconds > settings_in_use().request_timeout:
            return seconds
        return None

    def _failure(self, outcome: RequestResult | Exception) -> Failure | None:
        for reply in self.replies:
            messages = []
            for part in _parts(reply):
                messages.append(part.get("message"))
            if any(message.get("refusal") for message in _dicts(messages)):
                return Failure.REFUSED
            if Ending.REFUSED in map(ending_of, _reasons(reply)):
                return Failure.REFUSED
        if isinstance(outcome, Exception):
            kind: Failure | None = failure_of_error(outcome)
        else:
            kind = failure_of(outcome)
        if kind is None or kind is Failure.REFUSED:
            return kind or failure_of_reason(self._find_bad_reason(outcome))
        if self.error is not None:
            cause = failure_of_error(self.error)
            if cause is Failure.TEMPORARY and self._long_wait:
                return Failure.QUOTA
            # The exception has a type and a status code; HELM's result has only its text.
            return kind if cause is Failure.UNKNOWN else cause
        text = next(
            (reply["error"] for reply in self.replies if reply.get("error")), None
        )
        if text is not None:
            kind = failure_of_text(str(text))
        # The server has replied, so the client could not read the reply.
        if self.replies and kind is Failure.UNKNOWN:
            return Failure.MALFORMED
        return kind

    def _find_bad_reason(self, outcome: RequestResult | Exception) -> object:
        """Return the finish reason for which a text is no answer, if there is one.

        HELM's clients do not pass on all reasons, so reasons in the raw replies count, too, if they are known.
        """
        if isinstance(outcome, RequestResult) and facts_of(outcome).calls:
            return None
        reasons: list[object] = []
        for reply in self.replies:
            for reason in _reasons(reply):
                if ending_of(reason):
                    reasons.append(reason)
        if isinstance(outcome, RequestResult):
            for completion in outcome.completions:
                reasons.append((completion.finish_reason or {}).get("reason"))
        return next(filter(failure_of_reason, reasons), None)


def try_once(send: Callable[[Request], RequestResult], request: Request) -> Attempt:
    """Send a request once. The cache gets the replies only when `cache_replies` is called.

    Raises:
        InputError: a client got bad input. Every other exception becomes a failure in the result.
    """
    attempt = Attempt()
    token = store_watch.set(partial(_hold_replies, attempt))
    try:
        attempt.result = attempt.check(send(request))
    except InputError:
        raise
    except Exception as error:  # HELM's clients raise any type
        attempt.result = attempt.check(error)
    finally:
        store_watch.reset(token)
    return attempt


@contextmanager
def _hold_replies(
    attempt: Attempt,
    open_store: OpensStore,
    name: str,
) -> Iterator[_HoldingStore]:
    """Open a store for one look-up. New replies are kept in the attempt instead of the store."""
    with open_store() as store:
        attempt.error = None
        try:
            yield _HoldingStore(store, attempt, open_store, name)
        except Exception as error:
            attempt.error = error
            raise


class _HoldingStore:
    def __init__(
        self,
        store: Any,
        attempt: Attempt,
        open_store: OpensStore,
        name: str,
    ):
        self._store = store
        self._attempt = attempt
        self._open_store = open_store
        self._name = name

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        held = None
        # One of HELM's clients looks up twice.
        if self._attempt.held:
            held = self._attempt.held.get(self._place(key))
        if held:
            reply: dict[str, Any] | None = dict(held[2])
        else:
            reply = self._store.get(key)
        if reply:
            self._attempt.replies.append(reply)
        return reply

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        self._attempt.replies.append(value)
        # A copy is kept, because clients remove parts of the reply.
        self._attempt.held[self._place(key)] = self._open_store, key, dict(value)

    def _place(self, key: Mapping[str, Any]) -> str:
        return f"{self._name}\0{request_to_key(key)}"


_REASONS = ("stop_reason", "stopReason", "finish_reason", "finishReason", "reason")
"""Fields in which protocols say why an answer ended."""


def _parts(reply: _RawReply) -> list[dict[str, Any]]:
    """Return the parts of a reply that can have a finish reason, in OpenAI's, Anthropic's or Google's protocol."""
    lists = [
        [reply, reply.get("incomplete_details")],
        reply.get("choices"),
        reply.get("candidates"),
    ]
    parts = []
    for values in lists:
        parts += _dicts(values)
    return parts


def _reasons(reply: _RawReply) -> list[object]:
    reasons = []
    for part in _parts(reply):
        for name in _REASONS:
            if part.get(name) is not None:
                reasons.append(part[name])
    return reasons


def _find_defect(reply: _RawReply) -> str | None:
    """Return the defect of a reply in OpenAI's protocol, if it has one and the protocol is that one."""
    if reply.get("error"):
        return f"the server answered with an error: {reply['error']}"
    if "choices" not in reply:
        return None
    choices = _dicts(reply["choices"])
    if not choices:
        return "the server's answer has no choices"
    message = choices[0].get("message")
    if isinstance(message, dict) and not isinstance(message.get("content"), str):
        return "the server's answer has no text: its content is null or of another type"
    if "text" in choices[0] and not choices[0].get("logprobs"):
        return "the server's answer has no log-probabilities, without which HELM's completions client cannot read it"
    return None


def _dicts(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


_TOO_MANY_REQUESTS = 429


def _is_rate_limit(attempt: Attempt) -> bool:
    for error in (attempt.error, attempt.outcome):
        if not isinstance(error, Exception):
            continue
        if any(
            http_status(cause) == _TOO_MANY_REQUESTS for cause in list_causes(error)
        ):
            return True
    # HELM's clients return only the text of an error.
    return (
        re.search(rf"\b{_TOO_MANY_REQUESTS}\b", attempt.result.error or "") is not None
    )


_LONGEST_WAIT = 80.0
"""Largest number of seconds between two attempts."""


@dataclass(frozen=True)
class Retries:
    """How often and after what a request is sent again.

    Args:
        first_wait: seconds before the second attempt; doubled before each further one.
        takes_any_reply: whether every reply that a client stores ends the attempts, even one that is no answer. A
            refusal or a malformed response for which a client of HELM's stores nothing counts as a temporary failure.
    """

    tries: int
    first_wait: float
    takes_any_reply: bool = False

    def may_help(self, attempt: Attempt) -> bool:
        """Return whether the request of an attempt may succeed if it is sent again."""
        kind = failure_of(attempt.result)
        flags = attempt.result.error_flags
        if self.takes_any_reply and attempt.has_reply:
            return False
        if self.takes_any_reply and kind in (Failure.MALFORMED, Failure.REFUSED):
            # Sure is the status of an error from the server, or what our own code has found.
            if attempt.error is None:
                return True
            for cause in list_causes(attempt.error):
                if isinstance(cause, FailureError) or http_status(cause) is not None:
                    return False
            return True
        # HELM's clients mark errors that they know to be permanent.
        is_final = flags is not None and flags.is_retriable is False
        return kind is not None and kind.is_retriable and not is_final


class Sender:
    """Sends requests to one model or judge. Several threads may call it.

    HELM's own retries are not used: they treat all errors alike and take 150 seconds for each request.

    Args:
        client: HELM's client of a deployment, or HELM's context for a remote server.
        limit: seconds that a request may take. A model in this process has no limit.

    Attributes:
        caches_prompts: whether the provider reuses beginnings of prompts that it has read, or sells them cheaper.
        takes_facts: whether the client runs in this process, gets facts about each prompt, and reuses contexts.
        takes_tools: whether the client sends native tool calls (`models/apis/tools.py`).
        concurrency: the requests that the client wants at once, if the run asks for fewer.
    """

    def __init__(
        self,
        client: Client | Context,
        retries: Retries,
        limit: float | None = None,
    ):
        self.client = client
        self.limit = limit
        self._send = client.make_request
        self.caches_prompts = getattr(client, "caches_prompts", False)
        self.takes_facts = getattr(client, "takes_facts", False)
        self.takes_tools = getattr(client, "takes_tools", False)
        self.concurrency: int = getattr(client, "concurrency", 1)
        self._address = redact(
            str(getattr(getattr(client, "client", None), "base_url", ""))
        )
        self._stopped = Event()
        self._has_answered = False
        self._rate_limits = 0
        self._attempts = Retrying(
            stop=stop_after_attempt(retries.tries),
            wait=wait_exponential(retries.first_wait, _LONGEST_WAIT)
            + wait_random(0, retries.first_wait),
            sleep=self._sleep,
            retry=retry_if_result(retries.may_help),
            before_sleep=self._log_limit,
            # After the last attempt the failure is the result, instead of tenacity's own error.
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )

    def __call__(self, request: Request) -> Attempt:
        """Send a request, again if it fails temporarily, and return the last attempt.

        Raises:
            InputError: a client got bad input.
            CancelledError: `stop` was called, or nobody waits for the call any more.
        """
        return self._attempts(self._attempt, request)

    def stop(self) -> None:
        """Send no further requests, including those that wait for their next attempt."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called, or the call that this thread makes is cancelled."""
        return self._stopped.is_set() or is_cancelled()

    def _sleep(self, seconds: float) -> None:
        """Wait between two attempts, but not longer than the run or the call goes on."""
        end = time.monotonic() + seconds
        while not self.is_stopped and (left := end - time.monotonic()) > 0:
            self._stopped.wait(min(left, TICK))

    def _log_limit(self, state: RetryCallState) -> None:
        """Log rate limits of a server: the first, second, fourth and so on, so that the log stays short."""
        if state.outcome is None or state.next_action is None:
            return
        if not _is_rate_limit(state.outcome.result()):
            return
        self._rate_limits += 1
        if self._rate_limits.bit_count() == 1:
            server = self._address or "the server"
            helm_log.warning(
                f"rate limit (status 429), number {self._rate_limits} from {server};"
                f" the request is sent again in {state.next_action.sleep:.0f} seconds"
            )

    def _attempt(self, request: Request) -> Attempt:
        if self.is_stopped:
            raise CancelledError
        with _quiet_clients():
            attempt = try_once(self._send, request)
        if attempt.result.success:
            # A reply from the request cache does not prove that the server runs.
            self._has_answered |= not attempt.result.cached
            return attempt
        error = str(attempt.result.error)
        # HELM's clients omit the cause of an error.
        cause = attempt.error and attempt.error.__cause__
        while cause is not None and cause.__cause__ is not None:
            cause = cause.__cause__
        if (
            cause is not None
            and str(cause)
            and (text := describe_error(cause)) not in error
        ):
            error += f" ({text})"
        kind = failure_of(attempt.result)
        flags = attempt.result.error_flags
        if kind is Failure.UNREACHABLE and self._has_answered:
            # A server that has answered before is probably restarting. Our clients' flags still say that it is final.
            kind = Failure.TEMPORARY
            flags = ErrorFlags(is_retriable=True, is_fatal=False)
        elif kind is Failure.UNREACHABLE and self._address:
            error += f" at {self._address}"
        attempt.result = replace(
            add_facts(attempt.result, failure=kind),
            error=add_advice(error),
            error_flags=flags,
        )
        return attempt


_CHECK_TRIES = 4
_CHECK_WAIT = 1.0
"""Attempts at a request of a check, and most seconds before the second one."""


def ask_again(client: Client | Context, request: Request) -> RequestResult:
    """Send a request of a check as a run sends it, but with less patience.

    It is sent again if a failure can pass, so that a busy server is not taken for a broken one.

    Raises:
        InputError: a client got bad input.
    """
    wait = min(_CHECK_WAIT, settings_in_use().wait)
    return Sender(client, Retries(_CHECK_TRIES, wait))(request).result


def limit_time(client: Client, seconds: float) -> Client:
    """Make the provider's library in a HELM client give up after `seconds`, and return the client.

    A `timeout` in the deployment stays as it is, and so does the library's limit on connecting if it is shorter.
    """
    library = getattr(client, "client", None)
    default = getattr(library, "timeout", 0)
    # The timeout of a deployment is a number; the default of a library is an object with several limits.
    if library is not None and not isinstance(default, int | float | None):
        timeout = type(default)(
            seconds, connect=min(seconds, default.connect or seconds)
        )
        client.client = library.with_options(timeout=timeout)
    return client


_PACKAGE = str(Path(__file__).parents[1])
_helm = logging.getLogger("helm")
_is_sending: ContextVar[bool] = ContextVar("is_sending", default=False)


@contextmanager
def _quiet_clients() -> Iterator[None]:
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
        self._lines: set[tuple[str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        is_ours = record.pathname.startswith(_PACKAGE)
        if is_ours or not _is_sending.get() or _helm.isEnabledFor(logging.DEBUG):
            return True
        line = (record.pathname, record.lineno)
        is_new = line not in self._lines
        self._lines.add(line)
        # If a secret was removed from a traceback, the record has the traceback only as text.
        return is_new and not (record.exc_info or record.exc_text)


_filter = _ClientFilter()
