"""Secrets leave no trace in logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from helm_longctx.redaction.text import redact


def redact_logs() -> None:
    """Every log record, of whatever logger, is redacted when it is made: before any handler sees it."""
    factory = logging.getLogRecordFactory()
    if not isinstance(factory, _RedactingFactory):
        logging.setLogRecordFactory(_RedactingFactory(factory))


class _RedactingFactory:
    def __init__(self, factory: Callable[..., logging.LogRecord]):
        self._factory = factory

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._factory(*args, **kwargs)
        message = _message(record)
        if (clean := redact(message)) != message:
            record.msg, record.args = clean, ()
        if record.exc_info:
            _redact_traceback(record)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return record


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit: logging would print them as they are
        record.msg, record.args = f"{record.msg!r} {record.args!r}", ()
        return str(record.msg)


def _redact_traceback(record: logging.LogRecord) -> None:
    """A formatter prints `exc_text` where there is one, instead of the exception."""
    text = logging.Formatter().formatException(record.exc_info)  # type: ignore[arg-type]
    if (clean := redact(text)) != text:
        record.exc_text, record.exc_info = clean, None
