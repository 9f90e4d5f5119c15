"""Prints errors for users: one line on standard error, without a traceback."""

import sys
from collections.abc import Mapping
from types import TracebackType

from helm_longctx.errors import InputError, list_first
from helm_longctx.redaction.abbreviation import format_traceback
from helm_longctx.redaction.text import redact

_MOST_RUNS = 3
"""Number of runs that an error names. The log has all of them."""


def install_excepthook() -> None:
    """Make `helm-run` print input errors as one line, and other errors without prompts and secrets. Idempotent."""
    sys.excepthook = _excepthook


def _excepthook(
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
) -> None:
    if explain(error):
        print_error(error)
        return
    sys.stderr.write(redact(format_traceback(error)))


# `redact_uncaught` leaves hooks with this mark as they are.
_excepthook.redacts = True  # type: ignore[attr-defined]


def print_error(error: BaseException) -> None:
    """Print the line that explains an error."""
    print(f"helm-longctx: error: {explain(error)}", file=sys.stderr)


def refuse_runs(
    refusals: Mapping[str, str],
    count: int,
    failure: Exception | None = None,
) -> InputError:
    """Return an error about runs that were not made, with the reason if there was only one run."""
    reasons = f"{list_first(refusals, _MOST_RUNS)}: their errors are in the log"
    if count == 1:
        reasons = next(iter(refusals.values()))
    others = f". {failure}" if failure else ""
    return InputError(
        f"{len(refusals)} of {count} runs were not made: {reasons}{others}"
    )


def explain(error: BaseException) -> str | None:
    """Return one line about an `InputError` or about HELM's error for an unknown model, and None for other errors."""
    if isinstance(error, InputError):
        # The message of a library can have line breaks.
        return redact(" ".join(str(error).split()))
    text = str(error)
    if isinstance(error, ValueError) and text.startswith(
        ("Unknown model", "Model deployment")
    ):
        return f"{text}; give one of HELM's models, of --local-path or of `helm-longctx models`"
    return None
