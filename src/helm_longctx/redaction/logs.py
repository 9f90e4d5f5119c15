"""Redacts all text that Python writes by itself: log records, uncaught exceptions and warnings. Imports no HELM."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from helm_longctx.redaction.text import redact

_log = logging.getLogger(__name__)


@functools.cache
def warn_once(text: str) -> None:
    """Log a warning, but only once in a process."""
    _log.warning(text)


def redact_logs() -> None:
    """Redact the log records of all loggers when they are created, before any handler receives them. Idempotent."""
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
    except Exception:  # the arguments do not fit the message; logging would print them to standard error unredacted
        record.msg, record.args = f"{record.msg!r} {record.args!r}", ()
        return str(record.msg)


def _redact_traceback(record: logging.LogRecord) -> None:
    """Replace the exception by its redacted text. Formatters print `exc_text` instead of the exception if it is set."""
    text = logging.Formatter().formatException(record.exc_info)  # type: ignore[arg-type]
    if (clean := redact(text)) != text:
        record.exc_text, record.exc_info = clean, None


def redact_uncaught() -> None:
    """Redact warnings and uncaught exceptions, including those in threads and those that Python ignores. Idempotent."""
    for module, name in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        _redact_hook(module, name)
    _redact_warnings()


def _redact_hook(module: ModuleType, name: str) -> None:
    hook = getattr(module, name)
    if hasattr(hook, "redacts"):
        return

    @functools.wraps(hook)
    def call_with_redaction(*arguments: Any) -> None:
        # sys.excepthook gets type, value and traceback; the other hooks get one tuple that begins with them.
        exception = arguments if len(arguments) == 3 else arguments[0][:3]
        text = "".join(traceback.format_exception(*exception))
        if (clean := redact(text)) == text:
            hook(*arguments)  # there is no secret, and the original hook may print more
        elif sys.stderr is not None:
            sys.stderr.write(clean)

    call_with_redaction.redacts = True  # type: ignore[attr-defined]
    setattr(module, name, call_with_redaction)


def _redact_warnings() -> None:
    theirs = warnings.formatwarning
    if hasattr(theirs, "redacts"):
        return

    @functools.wraps(theirs)
    def format_with_redaction(*arguments: Any, **named: Any) -> str:
        return redact(theirs(*arguments, **named))

    format_with_redaction.redacts = True  # type: ignore[attr-defined]
    warnings.formatwarning = format_with_redaction
