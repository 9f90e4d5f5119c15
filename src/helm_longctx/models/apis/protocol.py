"""What the protocols of all providers share: JSON bodies, prompts in them, replies and streams.

The packages' own helpers for streams build the request from typed arguments and parse every event into models. Our
clients join the JSON of events to the reply that the server would have sent in one piece, so that a body is sent
exactly as it was made and fields of other servers are kept.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson

from helm_longctx.failures import (
    MINIMAX_KINDS,
    Failure,
    FailureError,
    failure_of_body,
)
from helm_longctx.helm_api import GeneratedOutput, Request, RequestResult, Thinking
from helm_longctx.models.results import LongContextResult
from helm_longctx.redaction.text import redact

Body = dict[str, Any]
"""The JSON body of a request or of a reply."""

_PROMPT = ("prompt", "system", "messages", "text")
"""The fields of a body that hold the prompt."""

_ERROR_HEAD = 1000
"""Characters of an error that are searched."""

_PIECE = 1 << 20
"""Characters that are hashed at once."""

_SHORT = 1 << 10
"""Characters of a text that is hashed together with its size. A longer text would be copied."""


def turns(request: Request) -> list[dict[str, Any]]:
    """Return the messages of a chat. A prompt that comes with them is the last user turn."""
    return [
        *(request.messages or []),
        *([{"role": "user", "content": request.prompt}] if request.prompt else []),
    ]


def check_text(request: Request) -> None:
    """Raise a `FailureError` if a request asks for something else than one answer in text."""
    values = {
        "num_completions": request.num_completions > 1,
        "echo_prompt": request.echo_prompt,
        "embedding": request.embedding,
        "multimodal_prompt": request.multimodal_prompt is not None,
    }
    if names := [name for name, value in values.items() if value]:
        raise FailureError(
            Failure.BAD_REQUEST,
            f"{' and '.join(names)} cannot be sent; request one answer in text",
        )


def fill_body(fields: Body, optional: Body, extra: Mapping[str, Any] | None) -> Body:
    """Return a body with its fields, those optional ones that have a value, and a deployment's own (`extra_body`)."""
    return {
        **fields,
        **{name: value for name, value in optional.items() if value is not None},
        **(extra or {}),
    }


def serialize(body: Body) -> bytes:
    """Return a body as it is sent."""
    try:
        return orjson.dumps(body)
    except TypeError:  # a lone surrogate: UTF-8 excludes it, and JSON escapes it
        return json.dumps(body).encode()


def parameters_of(body: Body) -> Body:
    """Return the fields of a body that are not the prompt."""
    parameters = {}
    for name, value in body.items():
        if name not in _PROMPT:
            parameters[name] = value
    return parameters


def without_prompt(body: Body) -> Body:
    """Return a body for a run's files, without the prompt and without secrets in `extra_body`."""
    record: Body = json.loads(redact(serialize(parameters_of(body)).decode()))
    return record


def digest_prompt(body: Body) -> str:
    """Return the SHA-256 of a body's prompt, in hexadecimal digits."""
    sha = hashlib.sha256()
    _update(sha, [body.get(name) for name in _PROMPT])
    return sha.hexdigest()


def _update(sha: Any, value: Any) -> None:
    """Hash JSON in pieces, so that no long text is copied as a whole."""
    if isinstance(value, Mapping):
        parts = value.items()
        value = []
        for part in parts:
            value += part
    if isinstance(value, list):
        # Each part is hashed after its size, so that differently divided texts have different digests.
        sha.update(f"[{len(value)}".encode())
        for item in value:
            _update(sha, item)
        return
    text = str(value)
    if len(text) <= _SHORT:
        sha.update(f"{len(text)}\0{text}".encode("utf-8", "surrogatepass"))
        return
    sha.update(f"{len(text)}\0".encode())
    for start in range(0, len(text), _PIECE):
        sha.update(text[start : start + _PIECE].encode("utf-8", "surrogatepass"))


def read_reply(content: bytes) -> Body:
    """Return the body of a reply; raise a `FailureError` if the content is not a JSON object."""
    with name_malformed():
        # Python refuses to read integers of more than 4,300 digits.
        reply = json.loads(
            content,
            parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
        )
        if not isinstance(reply, dict):
            raise ValueError
    return reply


@contextmanager
def name_malformed() -> Iterator[None]:
    """Raise errors of parsers, whose texts can quote the answer, as a `FailureError` that a reply is malformed."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnicodeDecodeError):
            what = "UTF-8"
        else:
            what = "a JSON object"
        raise FailureError(
            Failure.MALFORMED, f"the server's answer is not {what}"
        ) from error


def check_error(reply: Body) -> None:
    """Raise a `FailureError` if a reply with the status 200 is an error."""
    if error := reply.get("error"):
        raise FailureError(
            failure_of_body(error), f"the server answered with an error: {error}"
        )
    minimax = reply.get("base_resp")
    if isinstance(minimax, Mapping):
        number = minimax.get("status_code")
    else:
        number = None
    if number:
        kind = MINIMAX_KINDS.get(number) or failure_of_body(minimax, 400)
        raise FailureError(kind, f"the server answered with an error: {minimax}")


_COULD_NOT_FINISH = re.compile(
    r"could not finish the message because max_tokens or model output limit was reached",
    re.I,
)


def cut_reply(error: str) -> Body | None:
    """Return the reply that an error stands for: an answer without text that the limit on tokens has cut.

    OpenAI sends this error with the status 400 if the reasoning has used up the limit. None for any other error.
    """
    if not _COULD_NOT_FINISH.search(error[:_ERROR_HEAD]):
        return None
    message = {"role": "assistant", "content": ""}
    return {
        "choices": [
            {
                "index": 0,
                "finish_reason": "length",
                "message": message,
            }
        ]
    }


def cut_at_stop(text: str, stops: list[str]) -> str:
    """Return a text up to the first stop sequence, for models that do not support them."""
    end = len(text)
    for stop in stops:
        start = text.find(stop)
        if start >= 0:
            end = min(end, start)
    return text[:end]


def make_result(
    request: Request,
    text: str,
    ending: str,
    reasoning: str | None = None,
) -> RequestResult:
    """Return the result of a request that has an answer: its text, why it ended, and the reasoning before it."""
    if reasoning is None:
        thinking = None
    else:
        thinking = Thinking(reasoning)
    output = GeneratedOutput(
        cut_at_stop(text, request.stop_sequences),
        0,
        [],
        {"reason": ending},
        thinking=thinking,
    )
    return LongContextResult(
        success=True,
        embedding=[],
        completions=[output],
        cached=False,
    )


def check_piece(name: str, value: object) -> None:
    """Raise a `FailureError` if a piece of an answer is not text, although its field holds text."""
    if name in ("content", "text") and not isinstance(value, str | None):
        raise FailureError(
            Failure.MALFORMED, "the server's answer has a piece that is not text"
        )


_REASONING_PARTS = ("thinking", "reasoning")


def read_parts(parts: list[Any]) -> tuple[str | None, str | None]:
    """Return the text and the reasoning in a content that is a list of parts, or None for what no part has.

    Mistral's parts of reasoning have a list of texts in `thinking`, Databricks' in `summary`, and Anthropic's have a
    text in `thinking`. Parts of another type, such as references to sources, are left out.

    Raises:
        FailureError: a part is a refusal, or a part of text has no text.
    """
    texts: list[str] = []
    reasoning: list[str] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise _no_text()
        kind = part.get("type")
        if kind == "refusal":
            raise FailureError(Failure.REFUSED, f"refusal: {part.get('refusal')}")
        if kind in _REASONING_PARTS:
            reasoning.append(read_reasoning(part, _REASONING_IN_PARTS) or "")
        elif kind in ("text", "output_text"):
            text = part.get("text")
            if not isinstance(text, str):
                raise _no_text()
            texts.append(text)
    return "".join(texts) if texts else None, "".join(reasoning) if reasoning else None


def _no_text() -> FailureError:
    return FailureError(
        Failure.MALFORMED,
        "the server's answer has a part without a text, or of another type",
    )


_REASONING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "reasoning_details",
)
"""Fields of a message with its reasoning: DeepSeek's, that of OpenRouter and of newer versions of vLLM, GitHub Copilot's,
Ollama's, and OpenRouter's list."""

_REASONING_IN_PARTS = ("thinking", "reasoning", "summary", "text")
"""Fields of a part of reasoning: of Mistral and Anthropic, of others, and of Databricks."""


def read_reasoning(
    message: Mapping[str, Any],
    fields: Sequence[str] = _REASONING_FIELDS,
) -> str | None:
    """Return the reasoning in the fields of a message or of a part of it, or None if there is none.

    The value is a text, or a list of parts.
    """
    for name in fields:
        value = message.get(name)
        if isinstance(value, list):
            pieces = []
            for part in value:
                pieces.append(part if isinstance(part, str) else _read_piece(part))
            value = "".join(pieces)
        if value and isinstance(value, str):
            return value
    return None


def _read_piece(part: object) -> str:
    if isinstance(part, Mapping):
        text = part.get("text")
    else:
        text = None
    return text if isinstance(text, str) else ""


def cut_stream() -> FailureError:
    """Return the failure of a stream that ended before the answer was complete."""
    return FailureError(
        Failure.TEMPORARY, "the stream ended before the answer was complete"
    )


class TimedEvents:
    """The events of a stream, with the time at which the first piece of the answer arrives.

    Attributes:
        seconds: seconds from `start` to the first event with text; None before it.
    """

    def __init__(self, events: Iterable[Any], start: float):
        self._events = events
        self._start = start
        self.seconds: float | None = None

    def __iter__(self) -> Iterator[Any]:
        for event in self._events:
            if self.seconds is None and _has_text(event):
                self.seconds = time.monotonic() - self._start
            yield event


def _has_text(event: Any) -> bool:
    """Whether an event of OpenAI's or Anthropic's protocol has a piece of an answer or of its reasoning."""
    if not isinstance(event, Mapping):
        return False
    choices = event.get("choices")
    if isinstance(choices, list):
        parts = [part for part in choices if isinstance(part, Mapping)]
    else:
        parts = [event]
    texts = []
    for part in parts:
        texts.append(part.get("delta") or {"text": part.get("text")})
    for fields in texts:
        if isinstance(fields, Mapping):
            for name, text in fields.items():
                if (
                    bool(text)
                    and isinstance(text, str | list)
                    and name not in ("role", "type", "tool_calls")
                ):
                    return True
    return False
