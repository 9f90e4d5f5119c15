"""Secrets leave no trace in what Python itself prints: uncaught exceptions and warnings."""

from __future__ import annotations

import functools
import sys
import threading
import traceback
import warnings
from types import ModuleType
from typing import Any

from helm_longctx.redaction.text import redact


def redact_uncaught() -> None:
    """Redact exceptions that nobody catches, in any thread and where Python ignores them, and warnings. Idempotent."""
    for module, name in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        _redact_hook(module, name)
    _redact_warnings()


def _redact_hook(module: ModuleType, name: str) -> None:
    hook = getattr(module, name)
    if hasattr(hook, "redacts"):
        return

    @functools.wraps(hook)
    def redacting(*arguments: Any) -> None:
        # Of the interpreter: type, value and traceback; else one tuple that begins with them.
        exception = arguments if len(arguments) == 3 else arguments[0][:3]
        text = "".join(traceback.format_exception(*exception))
        if (clean := redact(text)) == text:
            hook(*arguments)
        elif sys.stderr is not None:
            sys.stderr.write(clean)

    redacting.redacts = True  # type: ignore[attr-defined]
    setattr(module, name, redacting)


def _redact_warnings() -> None:
    theirs = warnings.formatwarning
    if hasattr(theirs, "redacts"):
        return

    @functools.wraps(theirs)
    def redacting(*arguments: Any, **named: Any) -> str:
        return redact(theirs(*arguments, **named))

    redacting.redacts = True  # type: ignore[attr-defined]
    warnings.formatwarning = redacting
