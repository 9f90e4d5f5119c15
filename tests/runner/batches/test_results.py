"""Lines of results: one that cannot be read is the malformed answer of one request, whatever it has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.failures import Failure, Problem
from helm_longctx.models.apis.batches import BatchLine, read_outcomes, split_lines
from helm_longctx.models.apis.providers import anthropic, openai
from helm_longctx.run_settings import MAX_REPLY

READERS = {"openai": openai.read_result, "anthropic": anthropic.read_result}

FIELDS = st.sampled_from(
    [
        "custom_id",
        "response",
        "error",
        "status_code",
        "body",
        "result",
        "type",
        "message",
        "succeeded",
        "errored",
    ]
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(FIELDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def good_line(protocol: str, name: str = "a") -> dict[str, Any]:
    """Return a line with a reply."""
    if protocol == "openai":
        return {
            "custom_id": name,
            "response": {"status_code": 200, "body": {"x": 1}},
            "error": None,
        }
    return {"custom_id": name, "result": {"type": "succeeded", "message": {"x": 1}}}


def read(data: bytes, protocol: str) -> list[BatchLine]:
    """Return the outcomes of all lines."""
    return list(read_outcomes([data], "the results", READERS[protocol]))


@pytest.mark.parametrize("protocol", READERS)
@given(
    values=st.lists(
        JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40),
        max_size=5,
    )
)
def test_any_lines(protocol: str, values: list[bytes]) -> None:
    """Each line has one outcome and raises no error. The good lines before and after it are read."""
    lines = [line for value in values for line in value.split(b"\n")]
    good = json.dumps(good_line(protocol)).encode()
    outcomes = read(b"\n".join([good, *lines, good]), protocol)
    assert len(outcomes) == sum(bool(line.strip()) for line in lines) + 2
    assert outcomes[0].reading == outcomes[-1].reading == {"x": 1}
    assert all(isinstance(outcome.name, str | None) for outcome in outcomes)
    assert all(isinstance(outcome.reading, dict | Problem) for outcome in outcomes)


@given(st.lists(st.binary(max_size=30)), st.integers(1, 7))
def test_pieces(lines: list[bytes], size: int) -> None:
    """Lines are the same, however a file is divided when it arrives."""
    data = b"\n".join(lines)
    pieces: Iterator[bytes] = (
        data[start : start + size] for start in range(0, len(data), size)
    )
    assert list(split_lines(pieces)) == [
        line for line in data.split(b"\n")[:-1] for line in [line + b"\n"]
    ] + [line for line in data.split(b"\n")[-1:] if line]


def test_separators_of_unicode() -> None:
    """Line separators within a text do not end a line."""
    row = good_line("openai")
    row["response"]["body"] = {"text": "a\u2028b\x85c\x1dd"}
    (outcome,) = read(
        json.dumps(row, ensure_ascii=False).replace("\\u001d", "\x1d").encode(),
        "openai",
    )
    # A raw control character is no JSON, but U+2028 and U+0085 are allowed.
    assert outcome.reading.kind is Failure.MALFORMED
    row["response"]["body"] = {"text": "a\u2028b\x85c"}
    (outcome,) = read(json.dumps(row, ensure_ascii=False).encode(), "openai")
    assert outcome.reading == {"text": "a\u2028b\x85c"}


SPOILS: dict[str, tuple[Callable[[dict[str, Any]], bytes], str | None]] = {
    "cut off": (lambda row: json.dumps(row).encode()[:-5], "a"),
    "cut off within the name": (lambda row: json.dumps(row).encode()[:14], None),
    "bytes that are not UTF-8": (
        lambda row: json.dumps(row).encode()[:-3] + b"\xff\xfe}",
        "a",
    ),
    "no object": (lambda row: json.dumps([row]).encode(), None),
    "null": (lambda row: b"null", None),
    "no name": (lambda row: json.dumps({**row, "custom_id": None}).encode(), None),
    "a number as the name": (
        lambda row: json.dumps({**row, "custom_id": 5}).encode(),
        None,
    ),
    "no result": (lambda row: json.dumps({"custom_id": "a"}).encode(), "a"),
    "a text as the result": (
        lambda row: json.dumps(
            {"custom_id": "a", "response": "x", "result": "x"}
        ).encode(),
        "a",
    ),
    "a text as the reply": (
        lambda row: json.dumps(row).replace('{"x": 1}', '"x"').encode(),
        "a",
    ),
    "deep nesting": (
        lambda row: b'{"custom_id": "a", "response": ' + b"[" * 100_000,
        "a",
    ),
    "a number of 5,000 digits": (
        lambda row: b'{"custom_id": "a", "result": ' + b"9" * 5000 + b"}",
        "a",
    ),
    "a line that is too long": (
        lambda row: json.dumps({**row, "more": "x" * 2_000_000}).encode(),
        "a",
    ),
}


@pytest.mark.parametrize("protocol", READERS)
@pytest.mark.parametrize("name", SPOILS)
def test_a_bad_line(name: str, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad line is a malformed answer, with the request's name if it can be read. Other lines are read."""
    monkeypatch.setenv(MAX_REPLY, "1")
    spoil, expected = SPOILS[name]
    before, after = (
        json.dumps(good_line(protocol, name)).encode() for name in ("b", "c")
    )
    first, bad, last = read(
        b"\n".join([before, spoil(good_line(protocol)), after]), protocol
    )
    assert (first.name, last.name, first.reading, last.reading) == (
        "b",
        "c",
        {"x": 1},
        {"x": 1},
    )
    assert (bad.name, bad.line) == (expected, "line 2 of the results")
    assert bad.reading.kind is Failure.MALFORMED


def test_a_status_as_a_text() -> None:
    """A status that is the text of a number counts as the number, so that a paid answer is not lost."""
    row = good_line("openai")
    row["response"]["status_code"] = "200"
    (outcome,) = read(json.dumps(row).encode(), "openai")
    assert outcome.reading == {"x": 1}
    row["response"] |= {"status_code": "429", "body": {"message": "slow down"}}
    (outcome,) = read(json.dumps(row).encode(), "openai")
    assert (
        str(outcome.reading) == "temporary: Error code: 429 - {'message': 'slow down'}"
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            {"type": "invalid_request_error", "message": "messages: roles"},
            Failure.BAD_REQUEST,
        ),
        (
            {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
            Failure.TOO_LONG,
        ),
        ({"type": "overloaded_error", "message": "Overloaded"}, Failure.TEMPORARY),
        ({"type": "api_error", "message": "Internal server error"}, Failure.TEMPORARY),
        ({"type": "rate_limit_error", "message": "too many tokens"}, Failure.TEMPORARY),
        (
            {
                "type": "invalid_request_error",
                "message": "You have reached your API usage limits",
            },
            Failure.QUOTA,
        ),
    ],
)
def test_rows_with_errors_of_anthropic(error: dict[str, Any], kind: Failure) -> None:
    """The type of an error in a row says what the status of a response says."""
    result = {"type": "errored", "error": {"type": "error", "error": error}}
    row = {"custom_id": "a", "result": result}
    (outcome,) = read(json.dumps(row).encode(), "anthropic")
    assert outcome.reading.kind is kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"error": {"message": "x", "code": "data_inspection_failed"}},
            Failure.REFUSED,
        ),
        (400, {"error": {"message": "Content Exists Risk"}}, Failure.REFUSED),
        (
            429,
            {"error": {"message": "suspended due to insufficient balance"}},
            Failure.QUOTA,
        ),
        (400, {"error": {"message": "Unknown parameter"}}, Failure.BAD_REQUEST),
        (500, {"error": {"message": "Internal error"}}, Failure.TEMPORARY),
    ],
)
def test_rows_with_errors_of_openai(
    status: int, body: dict[str, Any], kind: Failure
) -> None:
    """A row with a status has the kind that a response would have."""
    row = good_line("openai")
    row["response"] = {"status_code": status, "body": body}
    (outcome,) = read(json.dumps(row).encode(), "openai")
    assert outcome.reading.kind is kind


def test_a_row_that_was_not_finished() -> None:
    """OpenAI's error for a used up limit is an empty answer that was cut, in a batch, too."""
    row = good_line("openai")
    words = "Could not finish the message because max_tokens or model output limit was reached."
    row["response"] = {"status_code": 400, "body": {"error": {"message": words}}}
    (outcome,) = read(json.dumps(row).encode(), "openai")
    assert outcome.reading["choices"][0]["finish_reason"] == "length"


def test_an_error_quotes_no_answer() -> None:
    """A line with a status of another type can contain an answer, which no log may show."""
    row = good_line("openai")
    row["response"] = {"status_code": "OK", "body": {"text": "the answer"}}
    (outcome,) = read(json.dumps(row).encode(), "openai")
    assert (
        str(outcome.reading)
        == "malformed: line 1 of the results cannot be read: TypeError"
    )
