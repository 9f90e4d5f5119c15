"""Classifies failed requests. HELM's clients report failures in exceptions, in results and in error texts.

The kind of an exception is decided by, in this order: its own kind (`FailureError`), an import error, a code of the
provider, a status of 500 or more, a pattern of its text, its HTTP status.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum

from helm.common.request import RequestResult
from helm.proxy.retry import NonRetriableException

from helm_longctx.errors import error_text


class Failure(Enum):
    """A kind of failure. Its value is the label at the start of error texts."""

    TOO_LONG = "too_long"
    """The prompt exceeds the model's context."""
    REFUSED = "refused"
    """A content policy or filter refused the prompt or the answer."""
    UNKNOWN_MODEL = "unknown_model"
    """The server or HELM does not know the model."""
    BAD_KEY = "bad_key"
    """The key is missing, wrong, or has no permission for the model."""
    QUOTA = "quota"
    """The account has no credit or no quota left for the request."""
    BAD_REQUEST = "bad_request"
    """The server or the client rejects the request as malformed or unsupported."""
    UNREACHABLE = "unreachable"
    """The server cannot be reached: refused connection, unknown host, wrong address."""
    MISSING_PACKAGE = "missing_package"
    """A Python package is not installed."""
    MALFORMED = "malformed"
    """The response does not follow the protocol: no JSON, unexpected structure, no choices, no text."""
    TEMPORARY = "temporary"
    """A rate limit, an overloaded or faulty server, a timeout, a dropped connection."""
    UNKNOWN = "unknown"
    """The reason cannot be determined."""

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed if it is sent again."""
        return self in (Failure.TEMPORARY, Failure.UNKNOWN)

    @property
    def ends_run(self) -> bool:
        """Whether all other requests to the same deployment will fail for the same reason."""
        return self in _DEPLOYMENT_FAILURES


# Bad requests and malformed responses are not in this set, because the content of one prompt can cause them.
_DEPLOYMENT_FAILURES = {
    Failure.UNKNOWN_MODEL,
    Failure.BAD_KEY,
    Failure.QUOTA,
    Failure.UNREACHABLE,
    Failure.MISSING_PACKAGE,
}


class FailureError(Exception):
    """A failure of a known kind. The message is the reason, without the kind's label."""

    def __init__(self, kind: Failure, message: str):
        super().__init__(message)
        self.kind = kind


# A gap in a pattern has a limit (`.{0,60}`), so that words of different sentences do not match together. DOTALL is
# needed because servers break the lines of their messages.
_TEXT_PATTERNS = [
    (kind, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for kind, pattern in [
        (
            Failure.MISSING_PACKAGE,
            r"optional dependency .{1,60} is not installed|no module named|cannot import name",
        ),
        # Python's TypeErrors for a wrong argument in `client_spec.args`, which `_MALFORMED` matches, too.
        (Failure.BAD_REQUEST, r"unexpected keyword argument|missing \d+ required"),
        # OpenAI's message for a single request above the limit per minute, for which waiting does not help. It must
        # come before TOO_LONG, which also matches "request too large".
        (Failure.QUOTA, r"request too large .{0,120}(?:tokens per min|TPM)"),
        (
            Failure.TOO_LONG,
            r"context_length_exceeded|string_above_max_length|request_too_large|maximum context length|max_model_len"
            r"|(?:exceed\w*|longer than|larger than|beyond) .{0,60}(?:context (?:length|window|size)|max \()"
            r"|context (?:length|window|size) .{0,40}exceeded"
            r"|(?:prompt|input|inputs|request)(?: is| are)? too (?:long|large)|too many (?:input |prompt )?tokens"
            r"|reduce the length of|input token count .{0,60}exceeds|input length and `max_tokens` exceed"
            r"|longer than the (?:maximum )?model|`?inputs`? tokens \+ `?max_new_tokens`? must be",
        ),
        (
            Failure.REFUSED,
            r"content[ _]filter|content[ _]policy|content management|ResponsibleAIPolicy|content moderation"
            r"|(?:content|prompt|predictions?) (?:was )?blocked|blocked by content|was flagged|received refusal"
            r"|not allowed by our safety|for safety reasons|violates (?:safety|usage)|safety filter"
            r"|stop_reason['\"]?: ?['\"]refusal",
        ),
        (
            Failure.UNKNOWN_MODEL,
            r"model_not_found|unknown model|no such model|DeploymentNotFound|not a valid model|decommissioned"
            r"|model(?:s/| deployment|:)? ?.{0,120}(?:does not exist|not found|(?:is|are) not available|not_found)"
            r"|not_found_error.{0,60}model|deployment for this resource does not exist|client for model deployment"
            r"|server is pinned to",  # transformers serve
        ),
        # For a limit per minute Google uses the same words, but adds when to retry.
        (
            Failure.QUOTA,
            r"insufficient_quota|exceeded your current quota(?!.*retry)|credit balance|payment required",
        ),
        (
            Failure.BAD_KEY,
            r"(?:invalid|incorrect|wrong|missing|no|valid) (?:api[ _-]?|x-api-)key|invalid_api_key|api key (?:is )?not"
            r"|authentication_error|permission_error|unauthori[sz]ed|authentication method|api_key client option"
            r"|missing credentials|no token from|expired token|token (?:has )?expired",
        ),
        (
            Failure.UNREACHABLE,
            r"connection refused|name or service not known|nodename nor servname|getaddrinfo|name resolution"
            r"|connecttimeout|failed to resolve|no address associated|no route to host|network is unreachable"
            r"|certificate verify failed|missing an 'https?://|invalid url|no connection adapters",
        ),
    ]
]
"""Patterns of error texts. The first one that matches decides."""

_CODES = {
    Failure.TOO_LONG: "context_length_exceeded string_above_max_length request_too_large",
    Failure.REFUSED: "content_filter content_policy_violation",
    Failure.UNKNOWN_MODEL: "model_not_found DeploymentNotFound",
    Failure.QUOTA: "insufficient_quota billing_hard_limit_reached billing_not_active billing_error",
    Failure.BAD_KEY: "invalid_api_key authentication_error permission_error",
    Failure.TEMPORARY: "overloaded_error timeout_error",
    Failure.BAD_REQUEST: "unsupported_parameter unsupported_value",
}
"""Unambiguous codes of OpenAI and Azure, and types of Anthropic. They decide before texts, which can quote a prompt."""

_KIND_BY_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}

_KIND_BY_STATUS = {
    **dict.fromkeys((401, 403), Failure.BAD_KEY),
    402: Failure.QUOTA,
    413: Failure.TOO_LONG,
    # If the text of a 404 does not mention a model, the address is wrong.
    **dict.fromkeys((404, 405), Failure.UNREACHABLE),
    # OpenAI's servers use 409 for locks, and the package openai sends the request again.
    **dict.fromkeys((408, 409, 425, 429), Failure.TEMPORARY),
}
"""Kinds by HTTP status, for texts that match no pattern. Other statuses below 500 are bad requests."""

# Finds the status in the text of an exception without one: "Error code: 429 - …" (OpenAI's package), "status code
# 503", "HTTP/1.1 502", "404 Client Error" (requests), or a text that begins with the number.
_STATUS_IN_TEXT = re.compile(
    r"\b(?:error code|status(?:[ _]code)?|http(?:/[\d.]+)?|code)\W{1,4}([45]\d\d)\b"
    r"|\b([45]\d\d) (?:client|server) error|^([45]\d\d)\b",
    re.IGNORECASE,
)

_TEMPORARY = re.compile(
    r"rate[ _]?limit|too many requests|overloaded|time[d-]? ?out|connection (?:error|reset|aborted|broken)"
    r"|server disconnected|closed connection|incomplete (?:chunked )?read|broken pipe|temporarily|bad gateway"
    r"|batch_expired|enqueued token limit|\bapi_error\b"
    r"|service unavailable|internal server error|remoteprotocolerror|resource_exhausted|eof occurred|remote end closed",
    re.IGNORECASE,
)
_MALFORMED = re.compile(
    r"^(?:\w+: )*(?:KeyError|TypeError|IndexError|AttributeError|AssertionError|ValidationError|JSONDecodeError)\b"
    r"|validation errors? for |Expecting value: line|Response content was|empty content|did not contain text"
    r"|non-text content|no completion",
    re.IGNORECASE,
)

_LABEL = re.compile(rf"^({'|'.join(kind.value for kind in Failure)}): ")

_HEAD = 1000
_TAIL = 500
"""Only so many characters at the start and the end of an error are searched: between them may be a prompt, which can
contain any words."""


def failure_of(result: RequestResult) -> Failure | None:
    """Return why a result is not an answer; None if it is an answer. An empty text is an answer.

    `success` is not enough: HELM's client for OpenAI reports a flagged prompt as a success with an empty text, and
    clients pass on values that are not text.
    """
    if not result.success:
        # HELM leaves `is_retriable` at None where a client does not know. Only False says that the failure is final.
        final = result.error_flags is not None and result.error_flags.is_retriable is False
        return _resolve_unknown(failure_of_text(result.error or ""), final)
    reasons = [(completion.finish_reason or {}).get("reason") for completion in result.completions]
    if kind := next(filter(None, map(failure_of_reason, reasons)), None):
        return kind
    if not result.completions or any(
        not isinstance(completion.text, str) for completion in result.completions
    ):
        return Failure.MALFORMED
    return None


def check_result(result: RequestResult) -> RequestResult:
    """Return a result that is an answer; raise a `FailureError` with the reason for another one."""
    if (failure := failure_of(result)) is not None:
        raise FailureError(failure, result.error or "")
    return result


def failure_of_text(error: str) -> Failure:
    """Classify an error's text. A label at its start (see `label_error`) decides."""
    if label := _LABEL.match(error):
        return Failure(label[1])
    return _classify_text(error, None)


def failure_of_error(error: BaseException) -> Failure:
    """Classify an exception by the statuses, codes and texts of it and of its causes."""
    chain = list(list_causes(error))
    if kind := next((each.kind for each in chain if isinstance(each, FailureError)), None):
        return kind
    # This comes before texts and statuses, because the message of an ImportError can contain any module's name.
    if any(isinstance(each, ImportError) for each in chain):
        return Failure.MISSING_PACKAGE
    if kind := next(
        (_KIND_BY_CODE[code] for each in chain for code in _codes(each) if code in _KIND_BY_CODE),
        None,
    ):
        return kind
    status = next((found for each in chain if (found := http_status(each)) is not None), None)
    # Some of HELM's clients wrap a provider's exception in their own, so the useful text is often in the cause.
    kind = _classify_text(
        "; ".join(f"{type(each).__name__}: {error_text(each)}" for each in chain), status
    )
    return _resolve_unknown(kind, any(isinstance(each, NonRetriableException) for each in chain))


def label_error(kind: Failure, error: str) -> str:
    """Put the kind's label before an error's text, so that the kind can be read from it even if the text is cut."""
    return error if _LABEL.match(error) else f"{kind.value}: {error}"


class Ending(Enum):
    """What a finish reason says of the text before it."""

    WHOLE = "stop"
    """The model has ended its answer, or has reached a stop sequence."""
    CUT = "length"
    """The limit on tokens or the model's context has cut the answer."""
    REFUSED = "refused"
    """A content policy ended or refused the answer."""
    BROKEN = "broken"
    """The server gave up. The same request may succeed later."""
    NO_TEXT = "no_text"
    """The model did something else than answer: it called a tool, or paused."""


_ENDINGS: Mapping[Ending, str] = {
    # The first ones are of OpenAI, Anthropic, and HELM's own clients.
    Ending.WHOLE: "stop end_turn stop_sequence endoftext unknown eos eos_token complete completed finish finished"
    " end_of_text word",
    Ending.CUT: "length max_tokens model_context_window_exceeded max_output_tokens max_length model_length limit"
    " error_limit",
    Ending.REFUSED: "content_filter refusal content_filtered guardrail_intervened error_toxic sensitive"
    " safety prohibited_content blocklist recitation spii image_safety",
    Ending.BROKEN: "error abort aborted cancelled user_cancel timeout network_error insufficient_system_resource other",
    Ending.NO_TEXT: "tool_calls function_call tool_use pause_turn tool_call compaction language"
    " malformed_function_call unexpected_tool_call too_many_tool_calls malformed_model_output malformed_tool_use",
}
"""What each finish reason means. OpenAI's and Anthropic's reasons are in it, and the ones of Google, Amazon, Mistral,
Cohere, DeepSeek, Zhipu, Together, OpenRouter, vLLM, SGLang, llama.cpp and TGI. Any other reason is a failure."""

_ENDING_OF = {reason: ending for ending, reasons in _ENDINGS.items() for reason in reasons.split()}

_FAILURES = {
    Ending.REFUSED: Failure.REFUSED,
    Ending.BROKEN: Failure.TEMPORARY,
    Ending.NO_TEXT: Failure.MALFORMED,
    None: Failure.MALFORMED,
}


def ending_of(reason: object) -> Ending | None:
    """Return what a finish reason of any protocol says; None if it is unknown. An answer without a reason is whole."""
    word = str(getattr(reason, "value", "unknown" if reason in (None, "") else reason)).lower()
    return (
        Ending.REFUSED
        if "content policy" in word
        else _ENDING_OF.get(word.removeprefix("finish_reason_"))
    )


def failure_of_reason(reason: object) -> Failure | None:
    """Return why a text with a finish reason is not an answer; None if it is one, which may be cut."""
    return _FAILURES.get(ending_of(reason))


def describe_reason(reason: object) -> str:
    """Say that a finish reason ended a text that is not an answer."""
    unknown = "" if ending_of(reason) else ", which is not known"
    return f"the server ended its answer with the finish reason {str(getattr(reason, 'value', reason))[:60]!r}{unknown}"


def check_reason(reason: object) -> str:
    """Return `stop`, `length` or `unknown`, as HELM does. Raises a `FailureError` if the text is not an answer."""
    if kind := failure_of_reason(reason):
        raise FailureError(kind, describe_reason(reason))
    ending = ending_of(reason)
    return ending.value if ending and reason not in (None, "", "unknown") else "unknown"


def _classify_text(text: str, status: int | None) -> Failure:
    text = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"
    if status is None and (found := _STATUS_IN_TEXT.search(text)):
        status = int(next(filter(None, found.groups())))
    # The text of a server's internal error says nothing about the request, whatever words it contains.
    if status is not None and status >= 500:
        return Failure.TEMPORARY
    for kind, pattern in _TEXT_PATTERNS:
        if pattern.search(text):
            return kind
    if status is not None:
        return _KIND_BY_STATUS.get(status, Failure.BAD_REQUEST)
    if _MALFORMED.search(text):
        return Failure.MALFORMED
    return Failure.TEMPORARY if _TEMPORARY.search(text) else Failure.UNKNOWN


def _resolve_unknown(kind: Failure, final: bool) -> Failure:
    """Return a bad request instead of an unknown failure if the client says that the failure is final."""
    return Failure.BAD_REQUEST if final and kind is Failure.UNKNOWN else kind


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, in the order in which Python's tracebacks name them."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    # Two exceptions can be each other's context, so the chain can be a circle.
    while following is not None and following not in seen:
        yield following
        seen.append(following)
        # `raise … from None` hides the context.
        following = following.__cause__ or (
            None if following.__suppress_context__ else following.__context__
        )


def _codes(error: BaseException) -> Iterator[str]:
    """Yield the codes and types in the response body of an exception of the providers' packages."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    for part in (body, inner):
        if isinstance(part, dict):
            yield from (
                str(part[name]) for name in ("code", "type") if isinstance(part.get(name), str)
            )


def http_status(error: BaseException) -> int | None:
    """Return the HTTP status of an exception. Providers' packages store it in different attributes."""
    response = getattr(error, "response", None)
    # `code` can also be a text (`invalid_api_key` in OpenAI's exceptions), so only error statuses count below.
    places = [
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "http_status", None),
        getattr(error, "code", None),
    ]
    if isinstance(response, dict):  # Amazon's
        places.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    return next(
        (int(place) for place in places if isinstance(place, int) and 400 <= place < 600), None
    )
