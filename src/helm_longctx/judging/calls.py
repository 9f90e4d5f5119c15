"""Calls to judges through HELM's clients: their settings, when a call is repeated, and how its result is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helm.common.request import Request, RequestResult
from tenacity import Retrying, retry_if_result, stop_after_attempt
from tenacity import wait_random_exponential as wait_randomly

from helm_longctx.environment import number_setting
from helm_longctx.errors import shorten
from helm_longctx.protocol.prompt import remove_thinking
from helm_longctx.redaction.text import redact

if TYPE_CHECKING:
    from helm.clients.client import Client

WAIT = "HELM_LONGCTX_JUDGE_WAIT"
"""Environment variable: longest wait in seconds after the first failed call. It doubles with each further one."""

TIMEOUT = "HELM_LONGCTX_JUDGE_TIMEOUT"
"""Environment variable: seconds that a call may take. Providers' libraries would wait ten minutes."""

READINGS = "HELM_LONGCTX_JUDGE_READINGS"
"""Environment variable: number of replies to request until one has a verdict."""

PARALLEL = "HELM_LONGCTX_JUDGE_PARALLEL"
"""Environment variable: number of parallel calls to judges."""

DEFAULTS = {WAIT: 2.0, TIMEOUT: 300.0, READINGS: 3.0, PARALLEL: 8.0}

TRIES = 6
"""Attempts at a call that keeps failing."""

FILTERED = "Content blocked by OpenAI filter"
"""Error of HELM's client for a reply that a content filter removed."""

NO_CONTENT = "Anthropic response has empty content"
"""Error of HELM's client for a refusal, which HELM's cache does not store."""

THINKING_START = "<think>"

UNREADABLE = ("KeyError: ", "TypeError: ", "ValidationError: ")
"""Start of the errors that HELM's clients raise when a reply does not follow its provider's protocol. They raise them
after the reply was stored in the cache."""

MORE_TOKENS = "give its deployment thinking_tokens, see docs/judges.md"


def setting(name: str) -> float:
    """Return the value of one of these settings.

    Raises:
        InputError: the value is not a number above 0, or not a whole one for READINGS and PARALLEL.
    """
    return number_setting(name, DEFAULTS[name], whole=name in (READINGS, PARALLEL))


def check_settings() -> None:
    """Check all settings, so that a mistake is found before the first request.

    Raises:
        InputError: see `setting`.
    """
    for name in DEFAULTS:
        setting(name)


def call(client: Client, request: Request) -> RequestResult | str:
    """Send a request, and repeat it after growing waits while it fails.

    HELM's own retries are not used: they wait 150 seconds in total, whatever the error.

    Returns:
        A reply, which HELM's cache now holds and which may be unusable (see `text_of`); else the error as a text.
    """
    calls = Retrying(
        stop=stop_after_attempt(TRIES),
        wait=wait_randomly(multiplier=setting(WAIT), max=60),
        retry=retry_if_result(_should_retry),
        # The last result instead of tenacity's RetryError: failures are results here.
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    result: RequestResult = calls(request_once, client, request)
    return result if _has_reply(result) else f"the call failed: {shorten(redact(result.error or ''))}"


def request_once(client: Client, request: Request) -> RequestResult:
    """Send a request once. Return a failed result instead of raising, whatever the client raises."""
    try:
        return client.make_request(request)
    except Exception as error:  # HELM's clients raise errors of any type
        return RequestResult(False, [], [], False, error=f"{type(error).__name__}: {error}")


def text_of(result: RequestResult) -> tuple[str | None, str]:
    """Return the answer in a reply, if it has one, and the error to report if no verdict can be read from it.

    The reasoning before the answer is left out, as it is where an API returns it in a field of its own: the official
    codes read verdicts from answers.
    """
    completion = result.completions[0] if result.completions else None
    is_cut = completion is not None and (completion.finish_reason or {}).get("reason") == "length"
    if completion is None or not completion.text:
        error = redact(result.error or "")
        empty = (
            f"the reply ended at the token limit before its answer; {MORE_TOKENS}" if is_cut else "the reply is empty"
        )
        return None, f"the reply cannot be used: {shorten(error)}" if error else empty
    if not isinstance(completion.text, str):  # HELM's clients pass on any JSON value in the place of the text
        return None, "the reply is not text"
    text = remove_thinking(completion.text)
    if is_cut and text.lstrip().startswith(THINKING_START):
        return None, f"the reply ended at the token limit within its reasoning; {MORE_TOKENS}"
    if is_cut:
        return text, "the reply ended at the token limit without a verdict"
    return text, "the reply has no verdict"


def _has_reply(result: RequestResult) -> bool:
    """Return whether a reply arrived, and HELM's cache holds it, even if HELM reports a failure or cannot parse it."""
    # A final failure with a request time, such as a moderated prompt, is a reply that HELM has cached.
    if result.success or (_is_final(result) and result.request_time is not None):
        return True
    return result.error == FILTERED or (result.error or "").startswith(UNREADABLE)


def _is_final(result: RequestResult) -> bool:
    return result.error_flags is not None and result.error_flags.is_retriable is False


def _should_retry(result: RequestResult) -> bool:
    """Return whether to repeat a call: not after a reply, nor if the server rejects request, key or address."""
    # "Error code: 404 - …" of the packages, or "status code 404". Without a status the failure may pass, like a 500.
    match = re.search(r"\b(?:code|status)\W{1,3}(\d{3})\b", result.error or "")
    status = int(match[1]) if match else 500
    if _has_reply(result) or (400 <= status < 500 and status not in (408, 409, 425, 429)):
        return False
    # HELM declares an empty content final, but a refusal that is not cached can be another reply next time.
    return not _is_final(result) or result.error == NO_CONTENT


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
