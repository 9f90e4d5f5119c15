"""Tests that servers' own words and fields for a failure give the kind that a user expects.

The numbers are ours. The wordings are those of the servers' sources, and of lists in other projects: `overflow.ts` of pi,
the exception mapping of LiteLLM, opencode, Roo Code.
"""

from __future__ import annotations

import json
import time
from typing import Any

import openai
import pytest

from helm_longctx.failures import (
    Ending,
    Failure,
    ending_of,
    failure_of_body,
    failure_of_error,
    failure_of_text,
)
from tests.support.http import HTTP

REQUEST = HTTP.Request("POST", "http://x/v1/chat/completions")


def raised(status: int, body: Any) -> openai.APIStatusError:
    """Return the exception that the package openai makes of a response."""
    response = HTTP.Response(status, request=REQUEST, json=body)
    return openai.OpenAI(api_key="x")._make_status_error_from_response(response)


def error(message: str, **fields: Any) -> dict[str, Any]:
    """Return a body in OpenAI's form."""
    return {"error": {"message": message, **fields}}


TOO_LONG: list[tuple[str, int, Any]] = [
    (
        "OpenAI",
        400,
        error(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            code="context_length_exceeded",
        ),
    ),
    (
        "OpenAI responses",
        400,
        error("Your input exceeds the context window of this model."),
    ),
    (
        "OpenAI configured limit",
        400,
        error(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens."
        ),
    ),
    (
        "OpenAI characters",
        400,
        error(
            "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760.",
            code="string_above_max_length",
        ),
    ),
    ("Azure", 400, error("Too much.", innererror={"code": "context_length_exceeded"})),
    (
        "Anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 213462 tokens > 200000 maximum",
            },
        },
    ),
    (
        "Anthropic bytes",
        413,
        {
            "type": "error",
            "error": {"type": "request_too_large", "message": "Too many bytes"},
        },
    ),
    (
        "Anthropic sum",
        400,
        error(
            "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"
        ),
    ),
    (
        "Google",
        400,
        [
            error(
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                status="INVALID_ARGUMENT",
            )
        ],
    ),
    ("Bedrock", 400, error("Input is too long for requested model.")),
    ("Bedrock bytes", 400, error("Too many total text bytes: 28000000 > 25000000")),
    (
        "Bedrock Mistral",
        400,
        error(
            "ValidationException: This model's maximum context length is 32768 tokens. Please reduce the length."
        ),
    ),
    (
        "Bedrock Llama",
        400,
        error(
            "The maximum prompt length for this model is 8192 tokens; 9000 were given."
        ),
    ),
    ("Vertex", 400, error("The request payload size exceeds the context limit.")),
    (
        "xAI",
        400,
        error(
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens."
        ),
    ),
    (
        "xAI budget",
        400,
        error(
            "Failed to start sampling: [input_too_large] Current message (1149677 tokens) exceeds budget (975424 tokens)"
        ),
    ),
    ("Groq", 400, error("Please reduce the length of the messages or completion.")),
    (
        "Together",
        400,
        error(
            "The input (140000 tokens) is longer than the model's context length (131072 tokens)."
        ),
    ),
    (
        "Together sum",
        422,
        error(
            "`inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens"
        ),
    ),
    (
        "Fireworks",
        400,
        error("The prompt is too long: 140000, model maximum context length: 131071"),
    ),
    (
        "Mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum"
            " context length",
            "type": "invalid_request_prompt",
        },
    ),
    (
        "Cohere",
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 128000"
        },
    ),
    (
        "Cohere size",
        400,
        {
            "message": "too many tokens: size limit exceeded by 11326 tokens. Try using shorter inputs."
        },
    ),
    (
        "DeepSeek",
        400,
        error(
            "This model's maximum context length is 65536 tokens. However, you requested 69648 tokens.",
            code="invalid_request_error",
        ),
    ),
    (
        "Perplexity",
        400,
        error(
            "Requested input of 140000 tokens exceeds the model's limit",
            type="bad_request",
        ),
    ),
    (
        "DeepInfra",
        400,
        {
            "detail": {
                "error": "Requested input length 140000 exceeds maximum input length 131072"
            }
        },
    ),
    (
        "DeepInfra number",
        400,
        error("Input too long: 140000 tokens, at most 131072 are allowed"),
    ),
    (
        "DashScope",
        400,
        error(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            type="invalid_request_error",
            code="invalid_parameter_error",
        ),
    ),
    ("z.ai", 400, error("Prompt exceeds max length", code="1261")),
    ("Zhipu in Chinese", 400, error("输入内容过长", code="1261")),
    (
        "Kimi",
        400,
        error(
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 566084)",
            type="invalid_request_error",
        ),
    ),
    (
        "MiniMax",
        400,
        error(
            "invalid params, context window exceeds limit (2013)",
            type="bad_request_error",
        ),
    ),
    (
        "Copilot",
        400,
        error(
            "prompt token count of 90000 exceeds the limit of 64000",
            code="model_max_prompt_tokens_exceeded",
        ),
    ),
    (
        "Copilot without a code",
        400,
        error("prompt token count of 90000 exceeds the limit of 64000"),
    ),
    (
        "GitHub Models",
        413,
        error(
            "Request body too large for gpt-4o model. Max size: 8000 tokens.",
            code="tokens_limit_reached",
        ),
    ),
    (
        "OpenRouter",
        400,
        error(
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000 tokens.",
            code=400,
        ),
    ),
    (
        "OpenRouter, nested",
        400,
        error(
            "Provider returned error",
            code=400,
            metadata={
                "raw": json.dumps(
                    error("prompt is too long: 213462 tokens > 200000 maximum")
                )
            },
        ),
    ),
    (
        "Poolside",
        400,
        error(
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens."
        ),
    ),
    (
        "LiteLLM",
        400,
        error(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException",
            code="400",
        ),
    ),
    (
        "LiteLLM 503",
        503,
        error(
            "litellm.ServiceUnavailableError: OpenAIException - Requested token count exceeds the model's maximum"
            " context length of 131072 tokens."
        ),
    ),
    (
        "vLLM",
        400,
        error(
            "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your"
            " prompt contains at least 3997 input tokens."
        ),
    ),
    (
        "vLLM decoder",
        400,
        error(
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192."
        ),
    ),
    (
        "vLLM budget",
        400,
        error(
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096"
            " tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
            type="BadRequestError",
            code=400,
        ),
    ),
    (
        "vLLM negative",
        400,
        error(
            "max_tokens must be at least 1, got -5004. (parameter=max_tokens, value=-5004)",
            type="BadRequestError",
            param="max_tokens",
            code=400,
        ),
    ),
    (
        "vLLM passed",
        400,
        error(
            "You passed 9000 input tokens and requested 100 output tokens. However, the model's context length is"
            " only 8192 tokens."
        ),
    ),
    (
        "SGLang",
        400,
        {
            "object": "error",
            "message": "The input (291793 tokens) is longer than the model's context length (262144 tokens).",
        },
    ),
    (
        "SGLang sum",
        400,
        {
            "object": "error",
            "message": "Requested token count exceeds the model's maximum context length of 32768 tokens. You"
            " requested a total of 70000 tokens.",
        },
    ),
    (
        "SGLang pool",
        400,
        {
            "message": "Input length (265330) exceeds the maximum allowed length (262138 tokens)."
        },
    ),
    (
        "TGI",
        422,
        {
            "error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 9000",
            "error_type": "validation",
        },
    ),
    (
        "TRT-LLM",
        400,
        error(
            "The sum of prompt length (9000.0), query length (0) and max_tokens (100) should not exceed max_seq_len"
            " (4096)"
        ),
    ),
    (
        "TRT-LLM short",
        400,
        {
            "object": "error",
            "message": "Prompt length (9000) should not exceed max_input_len (8192)",
        },
    ),
    (
        "Triton",
        400,
        {
            "error": "Encountered error for requestId: Prompt length (9000) exceeds maximum input length (8192)."
        },
    ),
    (
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9000,
                "n_ctx": 4096,
            }
        },
    ),
    (
        "llama.cpp 500",
        500,
        error(
            "the request exceeds the available context size. try increasing the context size",
            code=500,
            type="server_error",
        ),
    ),
    (
        "llama.cpp while it answers",
        500,
        error("Context size has been exceeded.", code=500, type="server_error"),
    ),
    (
        "llama.cpp input",
        500,
        error(
            "input (9000 tokens) is larger than the max context size (4096 tokens). skipping"
        ),
    ),
    (
        "llama-cpp-python",
        500,
        error(
            "Requested tokens (2285) exceed context window of 2048",
            type="internal_server_error",
        ),
    ),
    (
        "llama-cpp-python 400",
        400,
        error(
            "This model's maximum context length is 2048 tokens, however you requested 2300 tokens",
            code="context_length_exceeded",
        ),
    ),
    (
        "Ollama",
        500,
        error(
            "prompt too long; exceeded max context length by 5000 tokens",
            type="api_error",
        ),
    ),
    ("Ollama input", 500, {"error": "the input length exceeds the context length"}),
    (
        "LM Studio",
        400,
        error(
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the"
            " model with a larger context length, or provide a shorter input"
        ),
    ),
    (
        "LM Studio overflow",
        400,
        {
            "error": "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with"
            " context length of only 4096 tokens, which is not enough."
        },
    ),
    ("MLX", 400, error("Prompt length 9000 exceeds max_kv_size 4096")),
    (
        "DS4",
        400,
        error(
            "Prompt has 150,000 tokens, but the configured context size is 128,000 tokens"
        ),
    ),
    ("ik_llama", 400, error("the prompt does not fit into the context (n_ctx = 4096)")),
    (
        "LocalAI",
        500,
        error("rpc error: code = Unknown desc = prompt tokens exceed context size"),
    ),
    ("generic 413", 413, {"error": "Payload Too Large"}),
    ("generic token limit", 400, error("token limit exceeded")),
    ("generic total", 400, error("Total tokens 9000 exceed limit 4096")),
]
"""Name, status and body of refusals of a prompt that is longer than the model's context."""

OTHERS: list[tuple[str, int, Any, str]] = [
    (
        "Bedrock's throttling",
        429,
        error("ThrottlingException: Too many tokens, please wait before trying again."),
        "TEMPORARY",
    ),
    (
        "a limit per minute",
        429,
        error(
            "Rate limit reached for tokens per min: Limit 30000, Used 29000. Please try again in 2s."
        ),
        "TEMPORARY",
    ),
    (
        "an internal error",
        500,
        error("Internal error: the prompt is too long for this worker"),
        "TEMPORARY",
    ),
    ("no memory", 500, error("CUDA out of memory while reading tokens"), "TEMPORARY"),
    (
        "a request above the limit per minute",
        429,
        error(
            "Request too large for m on tokens per min (TPM): Limit 6000, Requested 9000."
        ),
        "QUOTA",
    ),
    (
        "the same with 413",
        413,
        error(
            "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 9000."
        ),
        "QUOTA",
    ),
    (
        "Moonshot's account",
        429,
        error(
            "Your account is suspended due to insufficient balance, please recharge your account",
            type="exceeded_current_quota_error",
        ),
        "QUOTA",
    ),
    (
        "the same without a type",
        429,
        error("Your account org-1 is suspended due to insufficient balance"),
        "QUOTA",
    ),
    (
        "Anthropic's limit",
        400,
        error(
            "You have reached your specified API usage limits. You will regain access on 2026-12-01.",
            type="invalid_request_error",
        ),
        "QUOTA",
    ),
    (
        "DashScope's account",
        400,
        error(
            "Access denied, please make sure your account is in good standing.",
            code="Arrearage",
        ),
        "QUOTA",
    ),
    ("DeepSeek's account", 402, error("Insufficient Balance"), "QUOTA"),
    (
        "OpenRouter's credits",
        402,
        error(
            "This request requires more credits, or fewer max_tokens. You can only afford 4000."
        ),
        "QUOTA",
    ),
    (
        "OpenRouter's day",
        429,
        error("Rate limit exceeded: free-models-per-day."),
        "QUOTA",
    ),
    (
        "Groq's day",
        429,
        error(
            "Rate limit reached on tokens per day (TPD): Limit 100000. Please try again in 7m12s."
        ),
        "TEMPORARY",
    ),
    ("Zhipu's account", 429, error("余额不足", code="1113"), "QUOTA"),
    (
        "DeepSeek's filter",
        400,
        error("Content Exists Risk", type="invalid_request_error"),
        "REFUSED",
    ),
    (
        "DashScope's filter",
        400,
        error(
            "Input text data may contain inappropriate content.",
            type="data_inspection_failed",
            code="data_inspection_failed",
        ),
        "REFUSED",
    ),
    (
        "DashScope's filter in words",
        400,
        error(
            "<400> InternalError.Algo.DataInspectionFailed: Output data may contain something."
        ),
        "REFUSED",
    ),
    (
        "Google's filter",
        400,
        error("The prompt was refused: PROHIBITED_CONTENT"),
        "REFUSED",
    ),
    ("Google's recitation", 400, error("Finish reason: IMAGE_RECITATION"), "REFUSED"),
    (
        "Moonshot's filter",
        400,
        error(
            "The request was rejected because it was considered high risk",
            type="content_filter",
        ),
        "REFUSED",
    ),
    (
        "DeepSeek's budget",
        400,
        error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        "BAD_REQUEST",
    ),
    (
        "Anthropic's budget",
        400,
        error(
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m"
        ),
        "BAD_REQUEST",
    ),
    (
        "OpenAI's budget",
        400,
        error(
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you"
            " provided 100000."
        ),
        "BAD_REQUEST",
    ),
    (
        "Groq's budget",
        400,
        error(
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the"
            " `context_window` for this model"
        ),
        "BAD_REQUEST",
    ),
    (
        "TGI's budget",
        422,
        {
            "error": "Input validation error: `max_new_tokens` must be <= 512. Given: 600"
        },
        "BAD_REQUEST",
    ),
    (
        "DashScope's budget",
        400,
        error("Range of max_tokens should be [1, 8192]"),
        "BAD_REQUEST",
    ),
    (
        "TGI's temperature",
        422,
        {"error": "Input validation error: `temperature` must be strictly positive"},
        "BAD_REQUEST",
    ),
    (
        "a parameter above its limit",
        400,
        error("temperature exceeds the limit 2"),
        "BAD_REQUEST",
    ),
    (
        "too many stop sequences",
        400,
        error(
            "Invalid 'stop': array too long. Expected an array with maximum length 4."
        ),
        "BAD_REQUEST",
    ),
    (
        "Qwen's thinking",
        400,
        error("parameter.enable_thinking must be set to false for non-streaming calls"),
        "BAD_REQUEST",
    ),
    (
        "roles",
        400,
        error("Conversation roles must alternate user/assistant/user/assistant/..."),
        "BAD_REQUEST",
    ),
    (
        "roles with 500",
        500,
        error("Conversation roles must alternate user/assistant"),
        "BAD_REQUEST",
    ),
    ("system turns", 500, error("System role not supported"), "BAD_REQUEST"),
    (
        "system turns of Google",
        400,
        error("Developer instruction is not enabled for models/m"),
        "BAD_REQUEST",
    ),
    (
        "a template",
        500,
        error("Jinja Exception: System message must be at the beginning."),
        "BAD_REQUEST",
    ),
    (
        "OpenRouter's endpoints",
        404,
        error("No endpoints found matching your data policy.", code=404),
        "UNKNOWN_MODEL",
    ),
]
"""Name, status, body and kind of other failures, some of which have words of a prompt that is too long."""


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        *(
            pytest.param(status, body, "TOO_LONG", id=name)
            for name, status, body in TOO_LONG
        ),
        *(
            pytest.param(status, body, kind, id=name)
            for name, status, body, kind in OTHERS
        ),
    ],
)
def test_words_of_servers(status: int, body: Any, kind: str) -> None:
    """The same kind comes from the package's exception, from the text of HELM's client, and from a body in a batch."""
    expected = Failure[kind]
    assert failure_of_error(raised(status, body)) is expected
    assert failure_of_text(f"OpenAI error: Error code: {status} - {body}") is expected
    assert failure_of_body(body, status) is expected


def test_at_least_fifty_wordings() -> None:
    """The table has each server once or more."""
    assert len({name for name, _, _ in TOO_LONG}) == len(TOO_LONG) > 50


def test_throttling_without_a_status() -> None:
    """A text without a status, as of boto3, is temporary if it asks to wait."""
    text = "An error occurred (ThrottlingException) when calling Converse: Too many tokens, please wait"
    assert failure_of_text(text) is Failure.TEMPORARY


def test_a_page_of_a_proxy_is_no_key() -> None:
    """A page for browsers with the status 403 comes from a proxy, so the key is not at fault."""
    page = "<!DOCTYPE html><html><title>Access denied</title></html>"
    response = HTTP.Response(403, request=REQUEST, html=page)
    error = openai.OpenAI(api_key="x")._make_status_error_from_response(response)
    assert failure_of_error(error) is Failure.UNREACHABLE


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("repetition", "WHOLE"),
        ("network_error", "BROKEN"),
        ("upstream_gateway_error", "BROKEN"),
        ("IMAGE_RECITATION", "REFUSED"),
        ("PROHIBITED_CONTENT", "REFUSED"),
        ("content_filter: PROHIBITED_CONTENT", "REFUSED"),
        ("error_limit", "CUT"),
    ],
)
def test_finish_reasons(reason: str, ending: str) -> None:
    """A finish reason says how the text before it ended."""
    assert ending_of(reason) is Ending[ending]


@pytest.mark.parametrize(
    "piece",
    [
        "exceeds ",
        "limit of a ",
        "context ",
        "model ",
        "max 1 ",
        "account ",
        "\n",
        "按超",
    ],
)
def test_long_texts_take_linear_time(piece: str) -> None:
    """A text of a megabyte that repeats the words of patterns is classified at once."""
    start = time.process_time()
    failure_of_text(piece * (1_000_000 // len(piece)))
    assert time.process_time() - start < 1
