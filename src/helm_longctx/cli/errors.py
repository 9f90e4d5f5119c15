"""How errors reach a person: one line on standard error, exit status not 0, no traceback."""

from __future__ import annotations

import sys
import traceback as tracebacks
from types import TracebackType

from helm_longctx.errors import InputError
from helm_longctx.redaction.text import redacted


def install_excepthook() -> None:
    """In `helm-run`, print bad input as one line, and no prompt with any other error. Idempotent."""
    if sys.excepthook is not _excepthook:
        global _previous
        _previous, sys.excepthook = sys.excepthook, _excepthook


_previous = sys.__excepthook__


def _excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if line := explain(error):
        print(f"helm-longctx: error: {line}", file=sys.stderr)
        return
    text = "".join(tracebacks.format_exception(kind, error, traceback))
    if (lean := _without_prompts(text, error)) == text:
        _previous(kind, error, traceback)
    else:
        sys.stderr.write(redacted(lean))


_excepthook.redacts = True  # type: ignore[attr-defined]


def _without_prompts(text: str, error: BaseException | None) -> str:
    """A traceback in which the long messages of an error, and of what it came from, are cut."""
    from helm_longctx.running.lean import LOG_LIMIT, short  # loads HELM, which a command may never need

    while error is not None:
        if len(message := str(error)) > LOG_LIMIT:
            text = text.replace(message, short(message))
        error = error.__cause__ or error.__context__
    return text


def explain(error: BaseException) -> str | None:
    """One line for bad input, ours or a model that HELM does not know; None for anything else."""
    if isinstance(error, InputError):
        return redacted(" ".join(str(error).split()))
    text = str(error)
    if isinstance(error, ValueError) and text.startswith(("Unknown model", "Model deployment")):
        return f"{text}; allowed: HELM's models, those of --local-path, and `helm-longctx models`"
    return None
