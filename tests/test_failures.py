"""Tests that the ways in which HELM's clients and the providers' libraries report failures are told apart."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import anthropic
import openai
import pytest
from helm.common.optional_dependencies import OptionalDependencyNotInstalled
from helm.common.request import ErrorFlags, GeneratedOutput, RequestResult

from helm_longctx.failures import Failure, failure_of_error, failure_of_text
from helm_longctx.models.results import describe_failure, failure_of, make_failure
from tests.support.http import HTTP
from tests.support.servers.closed import closed_address

REQUEST = HTTP.Request("POST", "http://x/v1/chat/completions")


def error_body(message: str, code: str | None) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "some_error", "param": None, "code": code}
    }


def status_error(
    status: int, message: str, code: str | None = None
) -> openai.APIStatusError:
    response = HTTP.Response(status, request=REQUEST, json=error_body(message, code))
    return openai.OpenAI(api_key="x")._make_status_error_from_response(response)


STATUSES = [
    (
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 9000.",
        None,
        "TOO_LONG",
    ),
    (400, "Too much.", "context_length_exceeded", "TOO_LONG"),
    (
        400,
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        None,
        "TOO_LONG",
    ),
    (400, "prompt is too long: 205000 tokens > 200000 maximum", None, "TOO_LONG"),
    (
        400,
        "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000",
        None,
        "TOO_LONG",
    ),
    (400, "`inputs` tokens + `max_new_tokens` must be <= 4096", None, "TOO_LONG"),
    (
        400,
        "The input token count (1100000) exceeds the maximum number of tokens allowed.",
        None,
        "TOO_LONG",
    ),
    (413, "Request exceeds the maximum size", "request_too_large", "TOO_LONG"),
    (
        400,
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
        None,
        "REFUSED",
    ),
    (
        400,
        "The response was filtered due to Azure OpenAI's content management policy.",
        "content_filter",
        "REFUSED",
    ),
    (400, "Output blocked by content filtering policy", None, "REFUSED"),
    (403, "Content violates usage guidelines.", None, "REFUSED"),
    (
        404,
        "The model `gpt-9` does not exist or you do not have access to it.",
        "model_not_found",
        "UNKNOWN_MODEL",
    ),
    (404, "The model `gpt-9` does not exist.", None, "UNKNOWN_MODEL"),
    (404, "models/gemini-0 is not found for API version v1beta", None, "UNKNOWN_MODEL"),
    (404, "model: claude-0", "not_found_error", "UNKNOWN_MODEL"),
    (
        403,
        "Project `p` does not have access to model `m`",
        "model_not_found",
        "UNKNOWN_MODEL",
    ),
    (404, "Not Found", None, "UNREACHABLE"),
    (405, "Method Not Allowed", None, "UNREACHABLE"),
    (401, "Incorrect API key provided", "invalid_api_key", "BAD_KEY"),
    (403, "Forbidden", None, "BAD_KEY"),
    (400, "API key not valid. Please pass a valid API key.", None, "BAD_KEY"),
    (
        429,
        "You exceeded your current quota, please check your plan",
        "insufficient_quota",
        "QUOTA",
    ),
    (402, "Insufficient balance", None, "QUOTA"),
    (400, "Your credit balance is too low to access the API", None, "QUOTA"),
    (
        429,
        "Request too large for m in organization o on tokens per min (TPM): Limit 1, Requested 2.",
        None,
        "QUOTA",
    ),
    (429, "You exceeded your current quota. Please retry in 34.1s.", None, "TEMPORARY"),
    (429, "Rate limit reached", "rate_limit_exceeded", "TEMPORARY"),
    (500, "Internal error: the prompt is too long for this worker", None, "TEMPORARY"),
    (503, "No model was flagged healthy", None, "TEMPORARY"),
    (529, "Overloaded", None, "TEMPORARY"),
    (408, "Timeout", None, "TEMPORARY"),
    (
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        None,
        "BAD_REQUEST",
    ),
    (422, "Field required", None, "BAD_REQUEST"),
]


@pytest.mark.parametrize(("status", "message", "code", "kind"), STATUSES)
def test_statuses(status: int, message: str, code: str | None, kind: str) -> None:
    """A status gives the same kind of failure from the library's exception and from the text of HELM's client.

    HELM's client needs openai 2, whose texts contain the whole body.
    """
    assert failure_of_error(status_error(status, message, code)) is Failure[kind]
    error = f"Error code: {status} - {error_body(message, code)}"
    assert failure_of_text(f"OpenAI error: {error}") is Failure[kind]
    retried = f"Failed to make request to a/b after retrying 5 times. Error: OpenAI error: {error}"
    assert failure_of_text(retried) is Failure[kind]


def caught(address: str) -> BaseException:
    """Return the exception that the library raises at an address."""
    with pytest.raises(openai.OpenAIError) as raised:
        openai.OpenAI(
            api_key="x", base_url=address, max_retries=0
        ).chat.completions.create(model="m", messages=[])
    return raised.value


def test_connections() -> None:
    """A missing server and a wrong address are one kind of failure, and a lost connection is another, except in HELM's text."""
    with closed_address() as address:
        refused = caught(f"{address}/v1")
    assert failure_of_error(refused) is Failure.UNREACHABLE
    assert failure_of_error(caught("127.0.0.1/v1")) is Failure.UNREACHABLE
    unknown = openai.APIConnectionError(request=REQUEST)
    unknown.__cause__ = HTTP.ConnectError("[Errno -2] Name or service not known")
    assert failure_of_error(unknown) is Failure.UNREACHABLE
    dropped = openai.APIConnectionError(request=REQUEST)
    dropped.__cause__ = HTTP.RemoteProtocolError(
        "Server disconnected without sending a response."
    )
    assert failure_of_error(dropped) is Failure.TEMPORARY
    assert failure_of_text(f"OpenAI error: {refused}") is failure_of_text(
        f"OpenAI error: {dropped}"
    )
    assert (
        failure_of_error(openai.APITimeoutError(request=REQUEST)) is Failure.TEMPORARY
    )
    assert (
        failure_of_error(anthropic.APITimeoutError(request=REQUEST))
        is Failure.TEMPORARY
    )


class AmazonError(Exception):
    """An exception with a response like botocore's."""

    response: ClassVar = {"ResponseMetadata": {"HTTPStatusCode": 503}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            OptionalDependencyNotInstalled(
                "Optional dependency openai is not installed. Please run"
            ),
            "MISSING_PACKAGE",
        ),
        (ModuleNotFoundError("No module named 'vllm'"), "MISSING_PACKAGE"),
        (json.JSONDecodeError("Expecting value", "<html>", 0), "MALFORMED"),
        (TypeError("'NoneType' object is not subscriptable"), "MALFORMED"),
        (KeyError("choices"), "MALFORMED"),
        (TypeError("create() got an unexpected keyword argument 'x'"), "BAD_REQUEST"),
        (
            ValueError("Could not find client for model deployment: a/b"),
            "UNKNOWN_MODEL",
        ),
        (ValueError("Missing credentials. Please pass an `api_key`"), "BAD_KEY"),
        (TimeoutError("timed out"), "TEMPORARY"),
        (HTTP.ConnectTimeout("timed out"), "UNREACHABLE"),
        (AmazonError("An error occurred"), "TEMPORARY"),
        (RuntimeError("CUDA error"), "UNKNOWN"),
    ],
)
def test_other_exceptions(error: Exception, kind: str) -> None:
    """Other exceptions are told apart by their types and texts."""
    assert failure_of_error(error) is Failure[kind]


def result(text: object = "x", success: bool = True, **named: object) -> RequestResult:
    reason = named.pop("reason", None)
    completion = GeneratedOutput(text, 0, [], {"reason": reason} if reason else None)  # type: ignore[arg-type]
    return RequestResult(success, [], [completion], False, **named)  # type: ignore[arg-type]


FLAGGED = "The prompt violates OpenAI's content policy. See https://labs.openai.com/policies/content-policy for more."
"""HELM's words, in a result that says success."""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (result(), None),
        (result(""), None),
        (result(reason="length"), None),
        (result(None), "MALFORMED"),
        (result(["x"]), "MALFORMED"),
        (RequestResult(True, [], [], False), "MALFORMED"),
        (result("", reason=FLAGGED), "REFUSED"),
        (result("Half of", reason="content_filter"), "REFUSED"),
        (result("", reason="refusal"), "REFUSED"),
        (result(success=False, error="Content blocked by OpenAI filter"), "REFUSED"),
        (
            result(success=False, error="Prompt blocked by OpenAI's safety filter"),
            "REFUSED",
        ),
        (
            result(
                success=False, error="Content blocked: No candidates in response: …"
            ),
            "REFUSED",
        ),
        (
            result(success=False, error="Received refusal from OpenAI API: No."),
            "REFUSED",
        ),
        (
            result(success=False, error="Anthropic response has empty content"),
            "MALFORMED",
        ),
        (
            result(
                success=False, error="no", error_flags=ErrorFlags(is_retriable=False)
            ),
            "BAD_REQUEST",
        ),
        (result(success=False, error="no"), "UNKNOWN"),
        (result(success=False), "UNKNOWN"),
    ],
)
def test_results(answer: RequestResult, kind: str | None) -> None:
    """A result that HELM calls a success can be a failure."""
    assert failure_of(answer) is (Failure[kind] if kind else None)


def test_a_prompt_in_an_error_is_not_read() -> None:
    """Words of a prompt that an error quotes do not decide the kind of failure."""
    prompt = (
        "Once. " * 300
        + "The connection was refused: connection refused, model_not_found. "
        + "The end. " * 200
    )
    assert (
        failure_of_text(f"NonRetriableException: not so: {prompt}") is Failure.UNKNOWN
    )


def test_a_failure_is_a_field() -> None:
    """The kind that a client names decides, whatever words its error has."""
    result = make_failure(
        Failure.UNREACHABLE, "too_long: the prompt exceeds the context window"
    )
    assert failure_of(result) is Failure.UNREACHABLE
    assert describe_failure(result).startswith("unreachable: too_long: the prompt")


def test_failures_that_pass_do_not_end_a_run() -> None:
    """A failure after which the request is sent again never ends a run."""
    assert [kind for kind in Failure if kind.is_retriable] == [
        Failure.TEMPORARY,
        Failure.UNKNOWN,
    ]
    assert not any(kind.ends_run for kind in Failure if kind.is_retriable)
