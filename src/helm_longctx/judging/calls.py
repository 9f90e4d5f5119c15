"""A call to a judge through HELM's client of its provider: what is tried again, and what came of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helm.common.request import Request, RequestResult
from tenacity import Retrying, retry_if_result, stop_after_attempt
from tenacity import wait_random_exponential as wait_randomly

from helm_longctx.errors import shorten
from helm_longctx.redaction.text import redact
from helm_longctx.settings import number_setting

if TYPE_CHECKING:
    from helm.clients.client import Client

WAIT = "HELM_LONGCTX_JUDGE_WAIT"
"""The longest first wait after a failed call in seconds; it doubles with each."""

TIMEOUT = "HELM_LONGCTX_JUDGE_TIMEOUT"
"""Seconds that a call may take. Providers' libraries wait ten minutes."""

READINGS = "HELM_LONGCTX_JUDGE_READINGS"
"""How many replies may have no verdict before a question counts as failed."""

PARALLEL = "HELM_LONGCTX_JUDGE_PARALLEL"
"""How many calls to judges may be in flight."""

DEFAULTS = {WAIT: 2.0, TIMEOUT: 300.0, READINGS: 3.0, PARALLEL: 8.0}

TRIES = 6
"""How often a call is made that fails."""

FILTERED = "Content blocked by OpenAI filter"
"""HELM's words for a reply that a filter took away."""

NO_CONTENT = "Anthropic response has empty content"
"""HELM's words for a reply that refuses, which its cache does not keep."""

UNREAD = ("KeyError: ", "TypeError: ", "ValidationError: ")
"""How HELM's clients fail at a reply that is not of its provider's protocol: when they read it, after it is kept."""


def setting(name: str) -> float:
    """Its value.

    Raises:
        InputError: it is no number above 0; READINGS and PARALLEL are whole numbers.
    """
    return number_setting(name, DEFAULTS[name], whole=name in (READINGS, PARALLEL))


def check_settings() -> None:
    """All of them, before anything is sent.

    Raises:
        InputError: as `setting`.
    """
    for name in DEFAULTS:
        setting(name)


def call(client: Client, request: Request) -> RequestResult | str:
    """The answer, be it one that cannot be used (see `text_of`), to a call that is made again while it fails.

    Not through HELM's own retries, which wait 150 seconds in all, whatever went wrong.

    Returns:
        A reply that HELM's cache now holds, or what went wrong.
    """
    calls = Retrying(
        stop=stop_after_attempt(TRIES),
        wait=wait_randomly(multiplier=setting(WAIT), max=60),
        retry=retry_if_result(_should_retry),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    result: RequestResult = calls(_request_once, client, request)
    return result if _has_reply(result) else f"the call failed: {shorten(redact(result.error or ''))}"


def _request_once(client: Client, request: Request) -> RequestResult:
    try:
        return client.make_request(request)
    except Exception as error:  # clients raise what they like
        return RequestResult(False, [], [], False, error=f"{type(error).__name__}: {error}")


def text_of(result: RequestResult) -> tuple[str | None, str]:
    """The reply, and what to say if it cannot be read."""
    completion = result.completions[0] if result.completions else None
    if completion is None or not completion.text:
        said = redact(result.error or "")
        return None, f"the reply cannot be used: {shorten(said)}" if said else "the reply is empty"
    if not isinstance(completion.text, str):  # HELM hands on what stands in the place of a text
        return None, "the reply is no text"
    if (completion.finish_reason or {}).get("reason") == "length":
        return completion.text, "the reply is cut at its limit of tokens and has no verdict"
    return completion.text, "the reply has no verdict"


def _has_reply(result: RequestResult) -> bool:
    """Whether a reply came, which HELM's cache then holds, be it one that HELM calls a failure or cannot read."""
    if result.success or (_is_final(result) and result.request_time is not None):
        return True
    return result.error == FILTERED or (result.error or "").startswith(UNREAD)


def _is_final(result: RequestResult) -> bool:
    return result.error_flags is not None and result.error_flags.is_retriable is False


def _should_retry(result: RequestResult) -> bool:
    """Not if there is a reply, nor if the request, the key or the address is refused."""
    found = re.search(r"\b(?:code|status)\W{1,3}(\d{3})\b", result.error or "")
    status = int(found[1]) if found else 500
    if _has_reply(result) or (400 <= status < 500 and status not in (408, 409, 425, 429)):
        return False
    return not _is_final(result) or result.error == NO_CONTENT


def limit_time(client: Client, seconds: float) -> Client:
    """A HELM client whose provider's library gives up after `seconds`, unless the deployment has its own `timeout`.

    The library's own limit on connecting stays where it is shorter.
    """
    library = getattr(client, "client", None)
    theirs = getattr(library, "timeout", 0)
    # What a deployment says is a number; what a library has by itself is an object of several.
    if library is not None and not isinstance(theirs, int | float | None):
        timeout = type(theirs)(seconds, connect=min(seconds, theirs.connect or seconds))
        client.client = library.with_options(timeout=timeout)
    return client
