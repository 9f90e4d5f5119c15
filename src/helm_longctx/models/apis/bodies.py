"""The JSON bodies of requests and replies: writes and reads them, and separates the prompt from the other fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.apis.parameters import Body
from helm_longctx.redaction.text import redact

_PROMPT = ("prompt", "system", "messages")
"""The fields of a body that hold the prompt."""

_PIECE = 1 << 20
"""Characters that are hashed at once."""


def serialize(body: Body) -> bytes:
    """Return a body as it is sent."""
    try:
        return orjson.dumps(body)
    except TypeError:  # a lone surrogate, which UTF-8 excludes; JSON escapes it
        return json.dumps(body).encode()


def read_reply(content: bytes) -> Body:
    """Return the body of a reply.

    Raises:
        FailureError: the content is not a JSON object.
    """
    with name_malformed():
        reply = json.loads(content, parse_int=_parse_int)
        if not isinstance(reply, dict):
            raise ValueError
    return reply


@contextmanager
def name_malformed() -> Iterator[None]:
    """Raise errors of parsers, whose texts can quote the answer, as a failure that says that a reply is malformed.

    Raises:
        FailureError: see above.
    """
    try:
        yield
    except (ValueError, RecursionError) as error:
        what = "UTF-8" if isinstance(error, UnicodeDecodeError) else "a JSON object"
        raise FailureError(Failure.MALFORMED, f"the server's answer is not {what}") from error


def _parse_int(digits: str) -> float:
    """Return an integer of a reply. Python refuses to read integers of more than 4,300 digits."""
    return int(digits) if len(digits) < 20 else float(digits)


def parameters_of(body: Body) -> Body:
    """Return the fields of a body that are not the prompt."""
    return {name: value for name, value in body.items() if name not in _PROMPT}


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
        value = [part for item in value.items() for part in item]
    if isinstance(value, list):
        # Each part is hashed after its size, so that differently divided texts have different digests.
        sha.update(f"[{len(value)}".encode())
        for item in value:
            _update(sha, item)
        return
    text = str(value)
    sha.update(f"{len(text)}\0".encode())
    for start in range(0, len(text), _PIECE):
        sha.update(text[start : start + _PIECE].encode("utf-8", "surrogatepass"))
