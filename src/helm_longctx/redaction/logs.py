"""Redacts all text that Python writes by itself: log records, uncaught exceptions and warnings. Imports no HELM."""

import functools
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
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
        try:
            message = record.getMessage()
        except Exception:  # the arguments do not fit the message; logging would print them to standard error unredacted
            message = record.msg = f"{record.msg!r} {record.args!r}"
            record.args = ()
        if (clean := redact(message)) != message:
            record.msg = clean
            record.args = ()
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            if (clean := redact(text)) != text:
                record.exc_text = clean
                record.exc_info = (
                    None  # formatters print `exc_text` instead of the exception
                )
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return record


def redact_uncaught() -> None:
    """Redact warnings and uncaught exceptions, including those in threads and those that Python ignores. Idempotent."""
    for module, name in (
        (sys, "excepthook"),
        (threading, "excepthook"),
        (sys, "unraisablehook"),
    ):
        if not hasattr(hook := getattr(module, name), "redacts"):
            setattr(module, name, _redact_hook(hook))
    theirs = warnings.formatwarning
    if not hasattr(theirs, "redacts"):

        @functools.wraps(theirs)
        def format_with_redaction(*arguments: Any, **named: Any) -> str:
            return redact(theirs(*arguments, **named))

        format_with_redaction.redacts = True  # type: ignore[attr-defined]
        warnings.formatwarning = format_with_redaction


def _redact_hook(hook: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(hook)
    def call_with_redaction(*arguments: Any) -> None:
        # sys.excepthook gets type, value and traceback; the other hooks get one tuple that begins with them.
        kind, value, trace = arguments if len(arguments) == 3 else arguments[0][:3]
        text = "".join(traceback.format_exception(kind, value, trace))
        if (clean := redact(text)) == text:
            hook(*arguments)  # there is no secret, and the original hook may print more
        elif sys.stderr is not None:
            sys.stderr.write(clean)

    call_with_redaction.redacts = True  # type: ignore[attr-defined]
    return call_with_redaction
