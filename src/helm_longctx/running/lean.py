"""No prompt in a log line or an exception: the head and a digest stand for a long text."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import fields
from typing import Any

from helm.common.request import Request

HEAD = 200
"""Characters of a long text that are shown."""

LOG_LIMIT = 4000
"""Characters of a log record that pass whole: a run spec or a traceback, but no long prompt."""


def digest(text: str) -> str:
    """SHA-256 of a text, hexadecimal; of its UTF-8 form, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short(text: str, head: int = HEAD, tail: int = 0) -> str:
    """A text, its middle or end replaced by how much is left out and the digest of the whole."""
    if len(text) <= head + tail:
        return text
    left_out = f"… [{len(text):,} characters, sha256 {digest(text)[:12]}]"
    return text[:head] + left_out + (f" …{text[-tail:]}" if tail else "")


class LeanFilter(logging.Filter):
    """Cuts the middle out of long log records; a traceback keeps its first calls and its end."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        message = record.getMessage()
        if len(message) > LOG_LIMIT:
            record.msg, record.args = short(message, LOG_LIMIT // 4, LOG_LIMIT // 4), ()
        if record.exc_info and not record.exc_text:
            text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = text if len(text) <= LOG_LIMIT else short(text, LOG_LIMIT // 4, LOG_LIMIT // 4)
        return True


def install_lean_logs() -> None:
    """Make HELM's log, and its errors that show a request, lean, whichever runner is used. Idempotent."""
    logger = logging.getLogger("helm")
    if not any(isinstance(known, LeanFilter) for known in logger.filters):
        logger.addFilter(LeanFilter())
    Request.__repr__ = _lean_request


def _lean_request(request: Request) -> str:
    shown = (f"{field.name}={_lean_value(getattr(request, field.name))}" for field in fields(request))
    return f"Request({', '.join(shown)})"


def _lean_value(value: Any) -> str:
    return repr(short(value)) if isinstance(value, str) else short(repr(value))
