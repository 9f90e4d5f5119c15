"""Tests that no prompt is in a log line or an exception."""

from __future__ import annotations

import traceback

import pytest
from helm.common.hierarchical_logger import hexception, hlog
from helm.common.request import Request
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.helm.patches import apply_patches
from helm_longctx.redaction.abbreviation import (
    LOG_LIMIT,
    abbreviate,
    describe_error,
    format_traceback,
)
from helm_longctx.redaction.text import redact, register_secret

PROMPT = "begin " + "the needle is here " * 50_000 + "end"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Install our hooks twice, and return HELM's log."""
    apply_patches()
    apply_patches()
    caplog.set_level("INFO")
    return caplog


@pytest.mark.parametrize("before", [0, 170, 185, 195, 210])
def test_no_half_of_a_secret(before: int) -> None:
    """A secret at the place where a text is cut is redacted whole, because half of it could not be recognised later."""
    secret = "opaque.Zq7-" * 8
    register_secret(secret)
    cut = redact(abbreviate(" " * before + secret + " " * 200))
    assert "opaque" not in cut
    assert "Zq7" not in cut


def test_short() -> None:
    """A long text is cut to its beginning, its size and a digest, and a short text stays."""
    assert abbreviate("x" * 200) == "x" * 200
    assert abbreviate(PROMPT).startswith("begin the needle")
    assert abbreviate(PROMPT).endswith("… [950,009 characters, sha256 847aa07d71f1]")


def test_circles_of_causes() -> None:
    """The traceback of two exceptions that are each other's context is short."""
    one = ValueError(PROMPT)
    other = KeyError("b")
    one.__context__ = other
    other.__context__ = one
    assert len(format_traceback(one)) < LOG_LIMIT


def test_log_lines(log: pytest.LogCaptureFixture) -> None:
    """A long log record is cut, while other records and their arguments stay."""
    hlog(PROMPT)
    hlog("a run spec " * 100)
    first, second = log.messages
    assert len(first) < LOG_LIMIT
    assert first.startswith("begin the needle")
    assert second == "a run spec " * 100


def test_logged_exceptions(log: pytest.LogCaptureFixture) -> None:
    """A logged traceback is cut, but shows the calls, the cause and the line of the exception."""
    try:
        try:
            raise KeyError(PROMPT)
        except KeyError as cause:
            raise ValueError(f"not {PROMPT}") from cause
    except ValueError as error:
        hexception(error)
    assert len(log.text) < LOG_LIMIT
    assert log.text.count("test_logged_exceptions") == 2
    assert "ValueError: not begin the needle" in log.text
    assert log.text.rstrip().endswith("sha256 16ea60596b88]")


def ping(calls: int, message: str) -> None:
    """Raise an error after many calls of alternating functions, because Python shortens the traceback of one that calls itself."""
    if not calls:
        raise RuntimeError(message)
    pong(calls - 1, message)


def pong(calls: int, message: str) -> None:
    ping(calls, message)


@pytest.mark.parametrize("message", ["the reason", PROMPT], ids=["short", "long"])
def test_tracebacks_as_text(message: str, log: pytest.LogCaptureFixture) -> None:
    """A long traceback that HELM logs as text keeps its beginning and the exception at the end, without the prompt."""
    try:
        ping(50, message)
    except RuntimeError:
        text = traceback.format_exc()
        assert len(text) > 3 * LOG_LIMIT
        hlog(f"Error when running a:b=c:\n{text}")
    (told,) = log.messages
    assert len(told) <= LOG_LIMIT
    assert told.startswith("Error when running a:b=c:\nTraceback")
    assert (
        "\nRuntimeError: the reason" in told
        or "\nRuntimeError: begin the needle is here" in told
    )
    assert "sha256" in told
    assert told.count("the needle is here") < 40


def test_a_request_in_an_exception() -> None:
    """A request in an exception is shown with a shortened prompt and shortened messages, and with its short fields."""
    shown = repr(
        Request(
            prompt=PROMPT, model="a/b", messages=[{"role": "user", "content": PROMPT}]
        )
    )
    assert len(shown) < 1500
    assert "model='a/b'" in shown
    assert "sha256 847aa07d71f1" in shown


LONG_TEXTS = st.builds(
    lambda text, times: text * times, st.text(max_size=40), st.integers(0, 75)
)
"""Texts of up to 3,000 characters. To draw each character of them would take seconds."""


@given(LONG_TEXTS)
def test_our_errors_are_whole(text: str) -> None:
    """An error of ours is shown whole in one line, because its advice comes last and it holds no prompt."""
    assert describe_error(InputError(text)) == redact(" ".join(text.split()))


@given(LONG_TEXTS)
def test_other_errors_are_abbreviated(text: str) -> None:
    """Errors of others are shortened, because they can quote a prompt."""
    line = " ".join(text.split())
    assert describe_error(ValueError(text)) == abbreviate(redact(line))


def test_a_prompt_in_an_error_of_others_is_abbreviated() -> None:
    """An error of others that quotes a whole prompt is shown in a few words."""
    assert len(describe_error(ValueError(PROMPT))) < 300
