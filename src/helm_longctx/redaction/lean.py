"""Keeps whole prompts out of HELM's log and of the exceptions that show a request."""

from __future__ import annotations

import logging
import sys
from dataclasses import fields
from typing import Any

from helm.common.request import Request

from helm_longctx.redaction.abbreviation import LOG_LIMIT, abbreviate, abbreviate_messages, cut_middle, format_traceback


class LeanFilter(logging.Filter):
    """Abbreviates long log records and long messages in their tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Abbreviate the record, and accept it."""
        message = record.getMessage()
        if len(message) > LOG_LIMIT:
            # HELM also logs tracebacks as text while it handles an exception, so the messages can stand in the text.
            message = abbreviate_messages(message, sys.exc_info()[1])
            record.msg, record.args = cut_middle(message) if len(message) > LOG_LIMIT else message, ()
        if record.exc_info and record.exc_info[1] and not record.exc_text:
            record.exc_text = format_traceback(record.exc_info[1]).rstrip()
        return True


def install_lean_logs() -> None:
    """Abbreviate long texts in HELM's log and in the `repr` of its requests, for every runner. Idempotent."""
    logger = logging.getLogger("helm")
    if not any(isinstance(present, LeanFilter) for present in logger.filters):
        logger.addFilter(LeanFilter())
    Request.__repr__ = _lean_request


def _lean_request(request: Request) -> str:
    values = (f"{field.name}={_lean_value(getattr(request, field.name))}" for field in fields(request))
    return f"Request({', '.join(values)})"


def _lean_value(value: Any) -> str:
    return repr(abbreviate(value)) if isinstance(value, str) else abbreviate(repr(value))
