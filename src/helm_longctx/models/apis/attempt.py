"""One attempt at a request: sends it, keeps replies out of the cache, and checks whether the result is an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import request_to_key
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import (
    Ending,
    Failure,
    FailureError,
    describe_reason,
    ending_of,
    failure_of,
    failure_of_error,
    failure_of_reason,
    failure_of_text,
    http_status,
    label_error,
    list_causes,
)
from helm_longctx.redaction.abbreviation import abbreviate, describe_error
from helm_longctx.redaction.text import redact

RawReply = Mapping[str, Any]
"""The provider's reply as JSON before the client parses it. Clients cache it in this form."""


OpensStore = Callable[[], AbstractContextManager[Any]]
store_watch: ContextVar[Callable[[OpensStore, str], AbstractContextManager[Any]] | None] = ContextVar(
    "store_watch", default=None
)
"""Set during an attempt: (function that opens a store, the store's name) → the store for the client. HELM's caches use
it when the patches of HELM are applied."""


class Store(Protocol):
    """The part of a store of replies that HELM's caches use."""

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the reply to a request; None if there is none."""
        ...

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Store a reply."""
        ...


class Attempt:
    """Keeps replies until they can be cached, and records facts that HELM's clients omit from their results.

    HELM's clients cache a reply before they parse it. So a reply that cannot be parsed would stay in the cache.

    Attributes:
        result: an answer, or a failure whose error starts with its kind.
        outcome: what the client returned or raised.
        replies: raw replies from the server or the cache.
        error: the exception of the last request to the server, with its causes; HELM's clients report only its text.
        held: replies that are not in the cache yet, as (function that opens the store, key, value).
    """

    result: RequestResult
    outcome: RequestResult | Exception

    def __init__(self) -> None:
        self.replies: list[RawReply] = []
        self.error: Exception | None = None
        self.held: dict[str, tuple[OpensStore, Mapping[str, Any], dict[str, Any]]] = {}

    def cache_replies(self) -> None:
        """Write the replies to the cache. A failure is only logged, because the answer is in the journal."""
        for open_store, key, value in self.held.values():
            try:
                with open_store() as store:
                    store.put(key, value)
            except Exception as error:
                hwarn(f"an answer is not in the request cache ({type(error).__name__}: {error}); the run continues")
        self.held.clear()

    @property
    def has_reply(self) -> bool:
        """Whether a reply has arrived, or came from the cache, even if it is no answer."""
        return bool(self.replies) or (isinstance(self.outcome, RequestResult) and self.outcome.success)

    @property
    def has_sure_error(self) -> bool:
        """Whether the server answered with the status of an error, or our own code has found what is wrong."""
        causes = () if self.error is None else list_causes(self.error)
        return any(isinstance(cause, FailureError) or http_status(cause) is not None for cause in causes)

    def check(self, outcome: RequestResult | Exception) -> RequestResult:
        """Return the outcome if it is an answer, or else a failure with the reason."""
        self.outcome = outcome
        kind = self._failure(outcome)
        if kind is None and isinstance(outcome, RequestResult):
            return outcome
        error = label_error(kind or Failure.UNKNOWN, self._reason(outcome))
        if isinstance(outcome, RequestResult):
            return replace(outcome, success=False, completions=[], cached=False, error=error)
        return RequestResult(False, [], [], False, error=error)

    def _failure(self, outcome: RequestResult | Exception) -> Failure | None:
        if any(map(_has_refusal, self.replies)):
            return Failure.REFUSED
        kind = failure_of_error(outcome) if isinstance(outcome, Exception) else failure_of(outcome)
        if kind is None or kind is Failure.REFUSED:
            return kind or failure_of_reason(self._find_bad_reason(outcome))
        if self.error is not None:
            cause = failure_of_error(self.error)
            # The exception has a type and a status code; HELM's result has only its text.
            return kind if cause is Failure.UNKNOWN else cause
        text = next((reply["error"] for reply in self.replies if reply.get("error")), None)
        kind = kind if text is None else failure_of_text(str(text))
        # The server has replied, so the client could not read the reply.
        return Failure.MALFORMED if self.replies and kind is Failure.UNKNOWN else kind

    def _find_bad_reason(self, outcome: RequestResult | Exception) -> object:
        """Return the finish reason for which a text is no answer; None if there is none.

        HELM's clients do not pass on all reasons, so those of the raw replies count, too, if they are known.
        """
        found = [reason for reply in self.replies for reason in _reasons(reply) if ending_of(reason)]
        if isinstance(outcome, RequestResult):
            found += [(each.finish_reason or {}).get("reason") for each in outcome.completions]
        return next(filter(failure_of_reason, found), None)

    def _reason(self, outcome: RequestResult | Exception) -> str:
        """Return the reason of a failure, without secrets and prompts."""
        is_text = isinstance(outcome, RequestResult) and outcome.success
        if is_text and (reason := self._find_bad_reason(outcome)) is not None:
            return redact(describe_reason(reason))
        if self.error is None and (defect := next(filter(None, map(_find_defect, self.replies)), None)):
            return abbreviate(redact(defect))
        if isinstance(outcome, Exception):
            return f"{type(outcome).__name__}: {describe_error(outcome)}"
        return abbreviate(redact(outcome.error or "no completion"))


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
def _hold_replies(attempt: Attempt, open_store: OpensStore, name: str) -> Iterator[Store]:
    """Open a store for one look-up. New replies are kept in the attempt instead of the store.

    Args:
        open_store: opens the store.
        name: identifies the store.
    """
    with open_store() as store:
        attempt.error = None
        try:
            yield _HoldingStore(store, attempt, open_store, name)
        except Exception as error:
            attempt.error = error
            raise


class _HoldingStore:
    def __init__(self, store: Store, attempt: Attempt, open_store: OpensStore, name: str):
        self._store, self._attempt, self._open_store, self._name = store, attempt, open_store, name

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        held = self._attempt.held.get(self._place(key))  # one of HELM's clients looks up twice
        reply = dict(held[2]) if held else self._store.get(key)
        if reply:
            self._attempt.replies.append(reply)
        return reply

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        self._attempt.replies.append(value)
        self._attempt.held[self._place(key)] = (
            self._open_store,
            key,
            dict(value),
        )  # a copy, because clients remove parts of the reply

    def _place(self, key: Mapping[str, Any]) -> str:
        return f"{self._name}\0{request_to_key(key)}"


_REASONS = ("stop_reason", "stopReason", "finish_reason", "finishReason", "reason")
"""Fields in which protocols say why an answer ended."""


def _parts(reply: RawReply) -> list[dict[str, Any]]:
    """Return the parts of a reply that can have a finish reason, in OpenAI's, Anthropic's or Google's protocol."""
    lists = [[reply, reply.get("incomplete_details")], reply.get("choices"), reply.get("candidates")]
    return [part for each in lists for part in _dicts(each)]


def _reasons(reply: RawReply) -> list[object]:
    return [part.get(name) for part in _parts(reply) for name in _REASONS]


def _has_refusal(reply: RawReply) -> bool:
    """Whether a policy refused or ended the answer."""
    messages = [part.get("message") for part in _parts(reply)]
    is_refused = any(ending_of(reason) is Ending.REFUSED for reason in _reasons(reply))
    return is_refused or any(isinstance(each, dict) and each.get("refusal") for each in messages)


def _find_defect(reply: RawReply) -> str | None:
    """Return the defect of a reply in OpenAI's protocol; None if it has none, or if the protocol is another one."""
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
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
