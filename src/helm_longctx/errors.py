"""The error for users, and helpers for its messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST_NAME = 200
"""Most characters of a value that are compared with names. Comparing a whole prompt would take minutes."""


class InputError(ValueError):
    """Bad input: a run-entry argument, an option or a file. The message is one line that says what to change."""


def is_unfit(error: BaseException) -> bool:
    """Whether an exception is of a kind that code raises for data in an unexpected format.

    Libraries written in Rust raise a PanicException for it, and HELM's reader of its own files raises exception groups.
    """
    kinds = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
    group = getattr(error, "exceptions", ())
    return isinstance(error, kinds) or type(error).__name__ == "PanicException" or any(map(is_unfit, group))


def bad_argument(where: str, name: str, value: object, allowed: Iterable[object] | str) -> InputError:
    """Make an `InputError` that names the argument, its value, the allowed values and the one most like it.

    Args:
        where: what the argument belongs to, e.g. a run entry.
        allowed: the allowed values, or a description of them.
    """
    choices = allowed if isinstance(allowed, str) else list_choices(value, allowed)
    return InputError(f"{where}: {name}={shorten(value)} is not allowed; allowed: {choices}")


def list_choices(value: object, allowed: Iterable[object]) -> str:
    """List the allowed values: `a, b`, or `a, b; did you mean b?` if `value` is spelled like one of them."""
    names = [str(choice) for choice in allowed]
    by_lower = {name.lower(): name for name in names}
    nearest = get_close_matches(str(value)[:_LONGEST_NAME].lower(), by_lower, n=1)
    return ", ".join(names) + (f"; did you mean {by_lower[nearest[0]]}?" if nearest else "")


def shorten(value: object, limit: int = 80) -> str:
    """The `repr` of a value, cut to about `limit` characters, so that no error holds a whole prompt or output."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= limit else text[:limit] + "…") if isinstance(value, str) else text[:limit]
