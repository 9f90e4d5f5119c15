"""Abbreviates long texts, so that no prompt stands in a log line or an error message."""

from __future__ import annotations

import hashlib
import traceback

from helm_longctx.redaction.text import redact

HEAD = 200
"""Characters of a long text that are shown."""

LONGEST_SECRET = 8192
"""Characters; tokens of gateways have thousands."""

LOG_LIMIT = 2000
"""Characters of a log record, or of an error's message, that pass whole: a run spec, but no long prompt."""

TAIL = 1000
"""Characters of a longer log record's end that are shown: a traceback has its exception there."""


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal; of its UTF-8 form, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def abbreviate(text: str) -> str:
    """The head of a text, how long the whole is, and its digest."""
    if len(text) <= HEAD:
        return text
    # The half of a secret that is cut in two would not be found later.
    head = redact(text[: HEAD + LONGEST_SECRET])[:HEAD]
    return f"{head}… [{len(text):,} characters, sha256 {digest(text)[:12]}]"


def cut_middle(text: str) -> str:
    """As `short`, and the end of the text behind it."""
    return f"{abbreviate(text)} … {text[-TAIL:]}"


def format_traceback(error: BaseException) -> str:
    """A traceback, in which the long messages of an error and of what it came from are cut."""
    return abbreviate_messages("".join(traceback.format_exception(error)), error)


def abbreviate_messages(text: str, error: BaseException | None) -> str:
    """A text in which the long messages of an error, and of what it came from, are cut."""
    cause = error
    while cause is not None:
        if len(message := str(cause)) > LOG_LIMIT:
            text = text.replace(message, abbreviate(message))
        cause = cause.__cause__ or cause.__context__
    return text
