"""No prompt in a log line or an exception."""

from __future__ import annotations

import traceback

import pytest
from helm.common.hierarchical_logger import hexception, hlog
from helm.common.request import Request

from helm_longctx.helm.patches import apply_patches
from helm_longctx.redaction.abbreviation import LOG_LIMIT, abbreviate, format_traceback
from helm_longctx.redaction.text import redact, register_secret

PROMPT = "begin " + "the needle is here " * 50_000 + "end"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """HELM's log, our hooks installed twice."""
    apply_patches()
    apply_patches()
    caplog.set_level("INFO")
    return caplog


@pytest.mark.parametrize("before", [0, 170, 185, 195, 210])
def test_no_half_of_a_secret(before: int) -> None:
    """What stands where a text is cut is known as a secret only as long as it is whole."""
    secret = "opaque.Zq7-" * 8
    register_secret(secret)
    cut = redact(abbreviate(" " * before + secret + " " * 200))
    assert "opaque" not in cut
    assert "Zq7" not in cut


def test_short() -> None:
    """A head, the size and a digest; short texts stay."""
    assert abbreviate("x" * 200) == "x" * 200
    assert abbreviate(PROMPT).startswith("begin the needle")
    assert abbreviate(PROMPT).endswith("… [950,009 characters, sha256 847aa07d71f1]")


def test_circles_of_causes() -> None:
    """Two exceptions can be each other's context."""
    one, other = ValueError(PROMPT), KeyError("b")
    one.__context__, other.__context__ = other, one
    assert len(format_traceback(one)) < LOG_LIMIT


def test_log_lines(log: pytest.LogCaptureFixture) -> None:
    """Long records are cut; others and their arguments stay."""
    hlog(PROMPT)
    hlog("a run spec " * 100)
    first, second = log.messages
    assert len(first) < LOG_LIMIT
    assert first.startswith("begin the needle")
    assert second == "a run spec " * 100


def test_logged_exceptions(log: pytest.LogCaptureFixture) -> None:
    """In a traceback, too; the calls and the errors that it came from are still there."""
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
    """Raise at the end of many calls; Python shortens a traceback where one line calls itself."""
    if not calls:
        raise RuntimeError(message)
    pong(calls - 1, message)


def pong(calls: int, message: str) -> None:
    ping(calls, message)


@pytest.mark.parametrize("message", ["the reason", PROMPT], ids=["short", "long"])
def test_tracebacks_as_text(message: str, log: pytest.LogCaptureFixture) -> None:
    """HELM logs them so when a run fails: the head and the exception at the end are there, and no prompt."""
    try:
        ping(50, message)
    except RuntimeError:
        text = traceback.format_exc()
        assert len(text) > 3 * LOG_LIMIT
        hlog(f"Error when running a:b=c:\n{text}")
    (told,) = log.messages
    assert len(told) <= LOG_LIMIT
    assert told.startswith("Error when running a:b=c:\nTraceback")
    assert "\nRuntimeError: the reason" in told or "\nRuntimeError: begin the needle is here" in told
    assert "sha256" in told
    assert told.count("the needle is here") < 40


def test_a_request_in_an_exception() -> None:
    """HELM puts requests into errors: prompt and messages are shortened, what is short is shown."""
    shown = repr(Request(prompt=PROMPT, model="a/b", messages=[{"role": "user", "content": PROMPT}]))
    assert len(shown) < 1500
    assert "model='a/b'" in shown
    assert "sha256 847aa07d71f1" in shown
