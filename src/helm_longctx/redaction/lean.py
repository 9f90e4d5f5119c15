"""No prompt in a log line or an exception: the head and a digest stand for a long text, in the log also its end."""

from __future__ import annotations

import hashlib
import logging
import sys
import traceback
from dataclasses import fields
from typing import Any

from helm_longctx.redaction.text import redacted

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


def short(text: str) -> str:
    """The head of a text, how long the whole is, and its digest."""
    if len(text) <= HEAD:
        return text
    # The half of a secret that is cut in two would not be found later.
    head = redacted(text[: HEAD + LONGEST_SECRET])[:HEAD]
    return f"{head}… [{len(text):,} characters, sha256 {digest(text)[:12]}]"


def without_middle(text: str) -> str:
    """As `short`, and the end of the text behind it."""
    return f"{short(text)} … {text[-TAIL:]}"


def lean_traceback(error: BaseException) -> str:
    """A traceback, in which the long messages of an error and of what it came from are cut."""
    return _with_short_messages("".join(traceback.format_exception(error)), error)


def _with_short_messages(text: str, error: BaseException | None) -> str:
    """A text in which the long messages of an error, and of what it came from, are cut."""
    cause = error
    while cause is not None:
        if len(message := str(cause)) > LOG_LIMIT:
            text = text.replace(message, short(message))
        cause = cause.__cause__ or cause.__context__
    return text


class LeanFilter(logging.Filter):
    """Cuts the middle of long log records, and long messages in tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        message = record.getMessage()
        if len(message) > LOG_LIMIT:
            # HELM also logs tracebacks as text, while it handles the exception.
            message = _with_short_messages(message, sys.exc_info()[1])
            record.msg, record.args = without_middle(message) if len(message) > LOG_LIMIT else message, ()
        if record.exc_info and record.exc_info[1] and not record.exc_text:
            record.exc_text = lean_traceback(record.exc_info[1]).rstrip()
        return True


def add_log_filter() -> None:
    """Cut the long records of HELM's log. Idempotent."""
    logger = logging.getLogger("helm")
    if not any(isinstance(known, LeanFilter) for known in logger.filters):
        logger.addFilter(LeanFilter())


def short_request(request: Any) -> str:
    """A HELM request as Python shows it, its long values cut."""
    shown = (f"{field.name}={_lean_value(getattr(request, field.name))}" for field in fields(request))
    return f"Request({', '.join(shown)})"


def _lean_value(value: Any) -> str:
    return repr(short(value)) if isinstance(value, str) else short(repr(value))
