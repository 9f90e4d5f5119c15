"""One attempt at a request: what its client got and cached, and whether that is an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from helm.common.hierarchical_logger import hwarn
from helm.common.key_value_store import request_to_key
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of, failure_of_error, failure_of_text, is_refusal, named
from helm_longctx.helm.patches import OpensStore, store_watch

RawReply = Mapping[str, Any]
"""What a client caches: the provider's reply as JSON, before the client reads it."""


class Store(Protocol):
    """What HELM's caches do with a store of replies."""

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply to a request; None if there is none."""
        ...

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        """Keep a reply."""
        ...


class Attempt:
    """Holds replies back from the cache, and notes what HELM's clients leave out of their results.

    HELM's clients cache a reply before they read it, so that one which cannot be read would stay there for good.

    Attributes:
        result: an answer, or a failure whose error begins with its kind.
        replies: raw replies, of the server or of the cache.
        error: what the last request to the server raised, with its causes; HELM's clients report its text alone.
        held: opens a store, key and value of each reply that is not in the cache yet, by store and key.
    """

    result: RequestResult

    def __init__(self) -> None:
        self.replies: list[RawReply] = []
        self.error: Exception | None = None
        self.held: dict[str, tuple[OpensStore, Mapping[str, Any], dict[str, Any]]] = {}

    def keep_replies(self) -> None:
        """Put what was held back into the cache. A cache that cannot be written is warned of: the answer is there."""
        for open_store, key, value in self.held.values():
            try:
                with open_store() as store:
                    store.put(key, value)
            except Exception as error:
                hwarn(f"an answer is not in the request cache ({type(error).__name__}: {error}); the run goes on")
        self.held.clear()

    def checked(self, outcome: RequestResult | Exception) -> RequestResult:
        """The outcome, if it is an answer; else a failure that says why it is none."""
        kind = self._failure(outcome)
        if kind is None and isinstance(outcome, RequestResult):
            return outcome
        error = named(kind or Failure.UNKNOWN, self._reason(outcome))
        if isinstance(outcome, RequestResult):
            return replace(outcome, success=False, completions=[], cached=False, error=error)
        return RequestResult(False, [], [], False, error=error)

    def _failure(self, outcome: RequestResult | Exception) -> Failure | None:
        if any(map(_is_refused, self.replies)):
            return Failure.REFUSED
        kind = failure_of_error(outcome) if isinstance(outcome, Exception) else failure_of(outcome)
        if kind is None or kind is Failure.REFUSED:
            return kind
        if self.error is not None:
            cause = failure_of_error(self.error)
            return kind if cause is Failure.UNKNOWN else cause
        said = next((reply["error"] for reply in self.replies if reply.get("error")), None)
        kind = kind if said is None else failure_of_text(str(said))
        return Failure.MALFORMED if self.replies and kind is Failure.UNKNOWN else kind

    def _reason(self, outcome: RequestResult | Exception) -> str:
        if self.error is None and (odd := next(filter(None, map(_oddity, self.replies)), None)):
            return odd
        if isinstance(outcome, Exception):
            return f"{type(outcome).__name__}: {outcome}"
        return outcome.error or "no completion"


def attempt(send: Callable[[Request], RequestResult], request: Request) -> Attempt:
    """Send a request once. The cache gets nothing until `keep_replies` is called.

    Raises:
        InputError: bad input of a client; whatever else it raises is in the result.
    """
    made = Attempt()
    token = store_watch.set(partial(_hold_replies, made))
    try:
        made.result = made.checked(send(request))
    except InputError:
        raise
    except Exception as error:  # clients raise what they like
        made.result = made.checked(error)
    finally:
        store_watch.reset(token)
    return made


@contextmanager
def _hold_replies(current: Attempt, open_store: OpensStore, name: str) -> Iterator[Store]:
    """A store for one look-up, whose new replies the attempt holds back.

    Args:
        open_store: opens it.
        name: tells it from other stores.
    """
    with open_store() as store:
        current.error = None
        try:
            yield _HoldingStore(store, current, open_store, name)
        except Exception as error:
            current.error = error
            raise


class _HoldingStore:
    def __init__(self, store: Store, attempt: Attempt, open_store: OpensStore, name: str):
        self._store, self._attempt, self._open_store, self._name = store, attempt, open_store, name

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        held = self._attempt.held.get(self._place(key))  # one of HELM's clients asks twice
        found = dict(held[2]) if held else self._store.get(key)
        if found:
            self._attempt.replies.append(found)
        return found

    def put(self, key: Mapping[str, Any], value: dict[str, Any]) -> None:
        self._attempt.replies.append(value)
        self._attempt.held[self._place(key)] = (self._open_store, key, dict(value))  # clients take parts out

    def _place(self, key: Mapping[str, Any]) -> str:
        return f"{self._name}\0{request_to_key(key)}"


_REASONS = ("stop_reason", "stopReason", "finish_reason", "finishReason", "reason")
"""Where protocols say why an answer ended."""


def _is_refused(reply: RawReply) -> bool:
    """Whether a policy ended or refused an answer, by OpenAI's, Anthropic's, Google's and Amazon's protocols."""
    lists = [[reply, reply.get("incomplete_details")], reply.get("choices"), reply.get("candidates")]
    parts = [part for each in lists for part in _dicts(each)]
    reasons = [part.get(name) for part in parts for name in _REASONS]
    messages = [part.get("message") for part in parts]
    return any(map(is_refusal, reasons)) or any(isinstance(each, dict) and each.get("refusal") for each in messages)


def _oddity(reply: RawReply) -> str | None:
    """What is wrong with the shape of a reply in OpenAI's protocol; None if it is of another, or well."""
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
