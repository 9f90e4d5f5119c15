"""How errors reach a person: one line on standard error, exit status not 0, no traceback."""

from __future__ import annotations

import sys
from types import TracebackType

from helm_longctx.errors import InputError
from helm_longctx.redaction.text import redacted


def install_excepthook() -> None:
    """In `helm-run`, print bad input as one line. Any other error is shown as before. Idempotent."""
    if sys.excepthook is not _excepthook:
        global _previous
        _previous, sys.excepthook = sys.excepthook, _excepthook


_previous = sys.__excepthook__


def _excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    line = explain(error)
    if line is None:
        _previous(kind, error, traceback)
    else:
        print(f"helm-longctx: error: {line}", file=sys.stderr)


def explain(error: BaseException) -> str | None:
    """One line for bad input, ours or a model that HELM does not know; None for anything else."""
    if isinstance(error, InputError):
        return redacted(" ".join(str(error).split()))
    text = str(error)
    if isinstance(error, ValueError) and text.startswith(("Unknown model", "Model deployment")):
        return f"{text}; allowed: HELM's models, those of --local-path, and `helm-longctx models`"
    return None
