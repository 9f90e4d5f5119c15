"""Classifies failed requests. HELM's clients report failures in exceptions, in results and in error texts.

Fields decide before words: first the kind that our own code gave (`FailureError`), then an import error, a code or a type
in the body of the response, and a status that has one meaning (402, 408, 409, 413, 425, 429, 500 and more). Only then the
words of the server decide, and at last the other statuses. Sources of the wordings are in docs/models.md.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from helm_longctx.errors import error_text


class Failure(str, Enum):
    """A kind of failure."""

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
    """A failure of a known kind. The message is the reason."""

    def __init__(self, kind: Failure, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Problem:
    """Why a request has no answer: the kind of failure, and the reason in words."""

    kind: Failure
    reason: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.reason}"


UNKNOWN_PROBLEM = Problem(Failure.UNKNOWN, "no reason is known")


# A gap in a pattern has a limit (`.{0,60}`), so that words of different sentences do not match together, and the time
# is linear. DOTALL is needed because servers break the lines of their messages.
_FLAGS = re.IGNORECASE | re.DOTALL

_QUOTA_WORDS = re.compile(
    # OpenAI's and Groq's message for a single request above the limit per minute, for which waiting does not help.
    r"request too large .{0,120}(?:tokens per min|TPM)"
    # For a limit per minute Google uses the same words, but adds when to retry.
    r"|insufficient_quota|exceeded your current quota(?!.*retry)|credit balance|payment required"
    r"|insufficient (?:account )?(?:balance|credits?|funds)|(?:out of|not enough|more) credits"
    r"|account .{0,80}(?:suspended|overdue|arrears)|overdue.payment|arrearage|in good standing"
    r"|(?:API usage|spending|spend|billing|monthly) limit|(?:recharge|top up) your"
    # A limit for a day, unless the server names a short wait.
    r"|(?:per[ _-]?day|daily)\b(?!.{0,400}(?:try again in|retry in))|\w*PerDay"
    r"|余额不足|欠费",
    _FLAGS,
)

_TEMPLATE_WORDS = re.compile(
    r"roles? must alternate|alternate between user|system (?:role|message|prompt)s? (?:is |are )?not supported"
    r"|only (?:the )?user,? .{0,40}roles? (?:is|are) supported|unexpected (?:message )?role"
    r"|(?:first|last) message must|system message must be|must be at the (?:beginning|start)"
    r"|templateerror|jinja|chat template|does not support (?:the )?system"
    r"|(?:system|developer) (?:role|instruction|message)s? .{0,40}(?:not (?:supported|enabled|allowed)|unsupported)"
    r"|consecutive (?:user|assistant|messages)|no user query found",
    _FLAGS,
)
"""Words of chat templates and servers that refuse system turns, or two turns of one role: Gemma, Llama 2, Mistral, Qwen,
Perplexity, Cohere, Google."""

_WAIT_WORDS = re.compile(
    r"please wait|try again later|throttl|too many requests|rate[ _-]?limit|concurren"
    r"|per[ _-](?:minute|min|second|hour|day|month)\b|\b[TR]P[MD]\b",
    _FLAGS,
)
"""Words of limits that pass with time. They also count tokens."""

_TOO_LONG_WORDS = re.compile(
    r"context_length_exceeded|string_above_max_length|request_too_large|input_too_large|tokens_limit_reached"
    r"|maximum context length|max_(?:model|seq|context)_len|max_kv_size|\bn_ctx\b|context ?window ?exceeded"
    r"|(?:exceed\w*|longer than|larger than|greater than|beyond|over) .{0,60}"
    r"(?:context (?:length|window|size|limit)|max \()"
    r"|context[ _](?:length|window|size|limit) .{0,40}(?:exceeded|exceeds|is only)"
    r"|(?:prompt|input|inputs|request)(?: is| are)? too (?:long|large)|too many (?:input |prompt )?tokens"
    r"|reduce the length of|input token count .{0,60}exceeds|input length and `max_tokens` exceed"
    r"|longer than the (?:maximum )?model|`?inputs`? tokens \+ `?max_new_tokens`? must be"
    # The room that is left for the answer is negative (vLLM).
    r"|max_\w{0,12}tokens\W.{0,40}(?:got|value|be|is)\W{1,3}-\d"
    r"|range of input length|token limit exceeded|exceeded (?:the )?(?:model )?token limit"
    r"|(?:输入|提示|上下文|内容|长度).{0,20}(?:过长|超过|超出|太长)|超[过出].{0,20}(?:长度|上下文|token)",
    _FLAGS,
)
"""Words that only a prompt above the model's context can mean."""

_EXCEEDS = re.compile(
    r"exceed|too (?:long|large|big|many)|(?:longer|larger|greater|more|bigger|higher) than|beyond|surpass|overflow"
    r"|(?:not|n't) fit|no room|out of range|reduce|shorten|shorter|\d\W{1,3}>\W{0,2}\d"
    r"|(?:must|should|can|may) (?:only )?(?:be|have|contain) (?:less|fewer|at most|no more|under|within|up to|<|\[)"
    r"|(?:max|maximum|configured|allowed)\W{1,3}(?:\w{1,20}\W{1,3}){0,3}(?:length|size|tokens|window|context)"
    r"|is only|limited to|at most|above the|over the|(?:limit|max|maximum)\W{1,3}(?:\w{1,20}\W{1,3}){0,3}(?:is|of|:)",
    _FLAGS,
)
_PROMPT = re.compile(
    r"\b(?:context|prompt|inputs?|sequence|conversation|messages?|text)\b", _FLAGS
)
_TOKENS = re.compile(r"\btokens?\b", _FLAGS)
_MEASURE = re.compile(
    r"token|length|window|context|budget|\bsize|bytes|characters|\bchars\b", _FLAGS
)
"""A text that says that a prompt (or tokens) exceeds a measure says that the prompt is too long, whatever the server."""

_OUTPUT = re.compile(
    r"max_(?:completion_|output_|new_)?tokens|max(?:Output)?Tokens|(?:completion|output) tokens|maximum tokens you request",
    _FLAGS,
)

_OUTPUT_LIMIT = re.compile(
    r"max_(?:completion_|output_|new_)?tokens\W{1,4}(?:value|must be|should be|is too|is \[|cannot|exceeds?|:? ?\d+ ?>)"
    r"|range of max_\w{0,12}tokens|(?:completion|output) tokens|maximum tokens you request|maxOutputTokens",
    _FLAGS,
)
"""Words about an output budget above the model's limit."""

_NOT_A_PROMPT = re.compile(
    r"input validation error|input should|input_value|invalid_request_error|[\"'](?:input|message)[\"']"
    r"|bad ?request(?:error)?",
    _FLAGS,
)
"""Words of frameworks that name no prompt."""


def is_output_limit(text: str) -> bool:
    """Whether an error says that the output budget is above the model's limit, and the prompt is not the reason."""
    return _OUTPUT_LIMIT.search(text) is not None and not _TOO_LONG_WORDS.search(text)


def _is_too_long(text: str) -> bool:
    """Whether a text says that the prompt exceeds the model's context."""
    if _WAIT_WORDS.search(text):
        return False
    if _TOO_LONG_WORDS.search(text):
        return True
    if _OUTPUT_LIMIT.search(text):
        return False
    text = _NOT_A_PROMPT.sub(" ", text)
    if not (_EXCEEDS.search(text) and _MEASURE.search(text)):
        return False
    if _PROMPT.search(text):
        return True
    return _TOKENS.search(text) is not None and not _OUTPUT.search(text)


_TEXT_PATTERNS = [
    (kind, re.compile(pattern, _FLAGS))
    for kind, pattern in [
        (
            Failure.REFUSED,
            r"content[ _]filter|content[ _]policy|content management|ResponsibleAIPolicy|content moderation"
            r"|(?:content|prompt|predictions?) (?:was )?blocked|blocked by content|was flagged|received refusal"
            r"|not allowed by our safety|for safety reasons|violates (?:safety|usage)|safety filter"
            r"|stop_reason['\"]?: ?['\"]refusal|content exists risk|data_?inspection_?failed|inappropriate content"
            r"|prohibited_content|(?:image_)?recitation|sensitive (?:content|words|information)|considered high risk"
            r"|(?:input|output)\w{0,10} (?:new_)?sensitive|SensitiveContentDetected|guardrail .{0,40}interven|敏感",
        ),
        (
            Failure.UNKNOWN_MODEL,
            r"model_not_found|unknown model|no such model|DeploymentNotFound|not a valid model|decommissioned"
            r"|model(?:s/| deployment|:)? ?.{0,120}(?:does not exist|not found|(?:is|are) not available|not_found)"
            r"|not_found_error.{0,60}model|deployment for this resource does not exist|client for model deployment"
            r"|server is pinned to"  # transformers serve
            r"|no endpoints (?:found|available)|no allowed providers",  # OpenRouter
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

_PYTHON_WORDS = [
    (
        Failure.MISSING_PACKAGE,
        re.compile(
            r"optional dependency .{1,60} is not installed|no module named|cannot import name",
            _FLAGS,
        ),
    ),
    # Python's TypeErrors for a wrong argument in `client_spec.args`. `_MALFORMED` matches them, too.
    (
        Failure.BAD_REQUEST,
        re.compile(r"unexpected keyword argument|missing \d+ required", _FLAGS),
    ),
]

_CODES = {
    Failure.TOO_LONG: "context_length_exceeded string_above_max_length"
    " request_too_large exceed_context_size_error model_max_prompt_tokens_exceeded"
    " context_window_exceeded contextwindowexceedederror input_too_large"
    " prompt_too_long context_too_long tokens_limit_reached context_window_overflow"
    " payload_too_large 1261",
    Failure.REFUSED: "content_filter content_policy_violation"
    " responsibleaipolicyviolation data_inspection_failed datainspectionfailed"
    " moderation_blocked content_moderation prohibited_content image_recitation"
    " sensitivecontentdetected inputtextsensitivecontentdetected"
    " outputtextsensitivecontentdetected 1301",
    Failure.UNKNOWN_MODEL: "model_not_found deploymentnotfound modelnotopen model.accessdenied",
    Failure.QUOTA: "insufficient_quota billing_hard_limit_reached billing_not_active"
    " billing_error exceeded_current_quota_error arrearage accountoverdueerror"
    " insufficient_user_quota insufficient_credits insufficient_balance"
    " payment_required allocationquota.freetieronly 1113",
    Failure.BAD_KEY: "invalid_api_key authentication_error permission_error"
    " invalid_authentication_error invalidapikey unauthenticated",
    Failure.TEMPORARY: "overloaded_error timeout_error engine_overloaded_error server_is_overloaded"
    " rate_limit_reached_error throttlingexception",
    Failure.BAD_REQUEST: "unsupported_parameter unsupported_value",
}
"""Codes and types that have one meaning, in small letters: of OpenAI, Azure, Anthropic, llama.cpp, GitHub, LiteLLM, xAI,
Moonshot, DashScope, Volcengine, Google and Zhipu (numbers). They decide before texts: those can quote a prompt."""

_KIND_BY_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}

_CODE_IN_TEXT = re.compile(
    r"[\"'](?:code|type|status)[\"'] ?: ?[\"']([\w.]{1,60})[\"']"
)
"""A code in the JSON of a body that stands in an error's text."""

MINIMAX_KINDS = {
    **dict.fromkeys((1000, 1001, 1002, 1013, 1024, 1033, 1041), Failure.TEMPORARY),
    **dict.fromkeys((1004, 2049), Failure.BAD_KEY),
    **dict.fromkeys((1008, 2056), Failure.QUOTA),
    **dict.fromkeys((1026, 1027), Failure.REFUSED),
    1039: Failure.TOO_LONG,
}
"""Numbers in the field `base_resp` of MiniMax's replies with the status 200."""

# OpenAI's servers use 409 for locks, and the package openai sends the request again.
_PASSING_STATUSES = (408, 409, 425, 429)

_NEVER_TOO_LONG = (401, 403, 404)

_TOKENS_OR_CONTEXT = re.compile(
    r"token|context|n_ctx|max_\w{0,12}len|max_kv_size", _FLAGS
)

_KIND_BY_STATUS = {
    **dict.fromkeys((401, 403), Failure.BAD_KEY),
    # If the text of a 404 does not mention a model, the address is wrong.
    **dict.fromkeys((404, 405, 407), Failure.UNREACHABLE),
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
    r"rate[ _]?limit|too many (?:requests|tokens)|throttl|please wait|overloaded"
    r"|time[d-]? ?out|connection (?:error|reset|aborted|broken)"
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

_HEAD = 1000
_TAIL = 500
"""Only so many characters at the start and the end of an error are searched: between them may be a prompt, which can
contain any words."""


def failure_of_text(error: str) -> Failure:
    """Classify an error's text."""
    return _classify_text(error, None)


def failure_of_error(error: BaseException) -> Failure:
    """Classify an exception by the statuses, codes and texts of it and of its causes."""
    chain = list(list_causes(error))
    if kind := next(
        (cause.kind for cause in chain if isinstance(cause, FailureError)), None
    ):
        return kind
    # This comes before texts and statuses, because the message of an ImportError can contain any module's name.
    if any(isinstance(cause, ImportError) for cause in chain):
        return Failure.MISSING_PACKAGE
    # The chat template of a model in this process refuses the turns.
    if any(type(cause).__module__.startswith("jinja2") for cause in chain):
        return Failure.BAD_REQUEST
    for cause in chain:
        for code in _body_codes(getattr(cause, "body", None)):
            if code in _KIND_BY_CODE:
                return _KIND_BY_CODE[code]
    statuses = [http_status(cause) for cause in chain]
    status = next((status for status in statuses if status is not None), None)
    if _is_web_page(error) and status is not None and status < 500:
        return Failure.UNREACHABLE
    # Some of HELM's clients wrap a provider's exception in their own, so the useful text is often in the cause.
    kind = _classify_text(
        "; ".join(f"{type(cause).__name__}: {error_text(cause)}" for cause in chain),
        status,
    )
    # HELM's clients raise this for a failure that is final.
    is_final = any(type(cause).__name__ == "NonRetriableException" for cause in chain)
    if is_final and kind is Failure.UNKNOWN:
        return Failure.BAD_REQUEST
    return kind


def _is_web_page(error: BaseException) -> bool:
    """Whether the response behind an exception is a page for browsers: a proxy or firewall sent it, no API."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    return isinstance(headers, Mapping) and "text/html" in str(
        headers.get("content-type", "")
    )


_ADVICE: list[tuple[Callable[[str], object], str]] = [
    (
        _TEMPLATE_WORDS.search,
        "the chat template or the server refuses these turns, such as a system turn or"
        " two turns of one role; choose another chat template of the model, or"
        " style=completion where the task allows it",
    ),
    (
        is_output_limit,
        "the output budget is above the model's limit; set max_tokens in the"
        " deployment's extra_body, or a smaller thinking_tokens",
    ),
    (
        re.compile(
            r"no endpoints (?:found|available)|no allowed providers", _FLAGS
        ).search,
        "no provider of the router takes this request; change `provider` in the"
        " deployment's extra_body, or the data policy of the account"
        " (https://openrouter.ai/settings/privacy)",
    ),
    (
        re.compile(r"<html|<!doctype|text/html", _FLAGS).search,
        "this is a page for browsers, probably of a proxy or a firewall; check"
        " base_url, HTTPS_PROXY and NO_PROXY",
    ),
]
"""What an error's text shows, and the setting that helps."""


def add_advice(error: str) -> str:
    """Add to an error's text which setting helps, if that is known and the text does not say it yet."""
    for applies, advice in _ADVICE:
        if applies(error[:_HEAD]) and advice not in error:
            return f"{error}; {advice}"
    return error


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
    Ending.WHOLE: "stop end_turn stop_sequence endoftext unknown eos eos_token complete"
    " completed finish finished end_of_text word repetition repetition_detected",
    Ending.CUT: "length max_tokens model_context_window_exceeded max_output_tokens"
    " max_length model_length limit error_limit",
    Ending.REFUSED: "content_filter refusal content_filtered guardrail_intervened"
    " error_toxic sensitive safety prohibited_content blocklist recitation spii"
    " image_safety image_recitation image_prohibited_content model_armor"
    " content_blocked data_inspection_failed",
    Ending.BROKEN: "error abort aborted cancelled user_cancel timeout network_error"
    " insufficient_system_resource other failed failure server_error provider_error"
    " upstream_error connection_error internal_error overloaded unavailable",
    Ending.NO_TEXT: "tool_calls function_call tool_use pause_turn tool_call compaction"
    " language malformed_function_call unexpected_tool_call too_many_tool_calls"
    " malformed_model_output malformed_tool_use",
}
"""What each finish reason means. OpenAI's and Anthropic's reasons are in it, and the ones of Google, Amazon, Mistral,
Cohere, DeepSeek, Zhipu, Together, OpenRouter, vLLM, SGLang, llama.cpp and TGI. Any other reason is a failure."""

_ENDING_OF = {
    reason: ending for ending, reasons in _ENDINGS.items() for reason in reasons.split()
}

_FAILURES = {
    Ending.REFUSED: Failure.REFUSED,
    Ending.BROKEN: Failure.TEMPORARY,
    Ending.NO_TEXT: Failure.MALFORMED,
    None: Failure.MALFORMED,
}


def ending_of(reason: object) -> Ending | None:
    """Return what a finish reason of any protocol says, or None if it is unknown. An answer without a reason is whole."""
    if reason in (None, ""):
        return Ending.WHOLE
    # Each answer is asked several times, and nearly always in these words.
    if isinstance(reason, str) and reason in _ENDING_OF:
        return _ENDING_OF[reason]
    word = str(getattr(reason, "value", reason)).lower().removeprefix("finish_reason_")
    if "content policy" in word:
        return Ending.REFUSED
    # Google's OpenAI-compatible server adds the reason of the filter: `content_filter: PROHIBITED_CONTENT`.
    word = word.partition(":")[0].strip()
    if word not in _ENDING_OF and word.endswith("_error"):
        return Ending.BROKEN
    return _ENDING_OF.get(word)


def failure_of_reason(reason: object) -> Failure | None:
    """Return why a text with a finish reason is not an answer, or None if it is one, which may be cut."""
    return _FAILURES.get(ending_of(reason))


def describe_reason(reason: object) -> str:
    """Say that a finish reason ended a text that is not an answer."""
    if ending_of(reason):
        unknown = ""
    else:
        unknown = ", which is not known"
    return f"the server ended its answer with the finish reason {str(getattr(reason, 'value', reason))[:60]!r}{unknown}"


def check_reason(reason: object) -> str:
    """Return `stop`, `length` or `unknown`, as HELM does. Raises a `FailureError` if the text is not an answer."""
    if kind := failure_of_reason(reason):
        raise FailureError(kind, describe_reason(reason))
    ending = ending_of(reason)
    if ending and reason not in (None, "", "unknown"):
        return ending.value
    return "unknown"


def failure_of_body(body: object, status: int | None = None) -> Failure:
    """Classify the JSON body of a failed request, whose status may be known: codes decide before words."""
    for code in _body_codes(body):
        if code in _KIND_BY_CODE:
            return _KIND_BY_CODE[code]
    text = str(body)
    return _classify_text(
        text if status is None else f"status {status}: {text}", status
    )


def _classify_text(text: str, status: int | None) -> Failure:
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]} {text[-_TAIL:]}"
    if status is None and (match := _STATUS_IN_TEXT.search(text)):
        status = int(next(filter(None, match.groups())))
    for kind, pattern in _PYTHON_WORDS:
        if pattern.search(text):
            return kind
    for code in _CODE_IN_TEXT.findall(text):
        if code.lower() in _KIND_BY_CODE:
            return _KIND_BY_CODE[code.lower()]
    if (kind_of_status := _classify_by_status(text, status)) is not None:
        return kind_of_status
    if _QUOTA_WORDS.search(text):
        return Failure.QUOTA
    if status not in _NEVER_TOO_LONG and _is_too_long(text):
        return Failure.TOO_LONG
    for kind, pattern in _TEXT_PATTERNS:
        if pattern.search(text):
            return kind
    if _TEMPLATE_WORDS.search(text):
        return Failure.BAD_REQUEST
    if status is not None:
        return _KIND_BY_STATUS.get(status, Failure.BAD_REQUEST)
    if _MALFORMED.search(text):
        return Failure.MALFORMED
    if _TEMPORARY.search(text):
        return Failure.TEMPORARY
    return Failure.UNKNOWN


def _classify_by_status(text: str, status: int | None) -> Failure | None:
    """Return what a status means that decides before the words, or None for one that does not."""
    if status is None:
        return None
    if status >= 500:
        if _TEMPLATE_WORDS.search(text):
            return Failure.BAD_REQUEST
        # llama.cpp, llama-cpp-python and Ollama refuse long prompts with 500. Without a word on tokens or the context,
        # the text of an internal error says nothing about the request.
        if _TOKENS_OR_CONTEXT.search(text) and _is_too_long(text):
            return Failure.TOO_LONG
        return Failure.TEMPORARY
    if status == 402:
        return Failure.QUOTA
    if status in _PASSING_STATUSES:
        if _QUOTA_WORDS.search(text):
            return Failure.QUOTA
        return Failure.TEMPORARY
    if status == 413:
        if _QUOTA_WORDS.search(text):
            return Failure.QUOTA
        return Failure.TOO_LONG
    return None


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


def _body_codes(body: object, depth: int = 4) -> Iterator[str]:
    """Yield the codes and types in the JSON body of an error in small letters, the outer ones first.

    Azure, Anthropic and gateways nest errors in errors.
    """
    if isinstance(body, list):
        body = next((part for part in body if isinstance(part, Mapping)), None)
    if not isinstance(body, Mapping) or depth == 0:
        return
    for name in ("code", "type", "status", "error_type", "reason"):
        if isinstance(body.get(name), str):
            yield body[name].lower()
    for name in ("error", "innererror", "detail", "details", "metadata"):
        yield from _body_codes(body.get(name), depth - 1)


def http_status(error: BaseException) -> int | None:
    """Return the HTTP status of an exception. Providers' packages store it in different attributes."""
    response = getattr(error, "response", None)
    # `code` can also be a text (`invalid_api_key` in OpenAI's exceptions), so only error statuses count below.
    statuses = [
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "http_status", None),
        getattr(error, "code", None),
    ]
    if isinstance(response, dict):  # Amazon's
        statuses.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    for status in statuses:
        if isinstance(status, int) and 400 <= status < 600:
            return int(status)
    return None
