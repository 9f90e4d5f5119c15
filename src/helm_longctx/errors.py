"""The one error that users are meant to read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST_NAME = 200
"""Characters of a value that are compared with names: whole prompts would take minutes."""


class InputError(ValueError):
    """Bad input: a run-entry argument, an option, a file. The message is one line that a user can act on."""


def is_format_error(error: BaseException) -> bool:
    """Whether it is what code raises at data of another form than it was written for.

    Code in Rust panics, and HELM's reader of its own files raises groups of such errors.
    """
    kinds = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
    group = getattr(error, "exceptions", ())
    return isinstance(error, kinds) or type(error).__name__ == "PanicException" or any(map(is_format_error, group))


def bad_argument(where: str, name: str, value: object, allowed: Iterable[object] | str) -> InputError:
    """An `InputError` that names the argument, the value, what is allowed, and which of these comes nearest."""
    choices = allowed if isinstance(allowed, str) else list_choices(value, allowed)
    return InputError(f"{where}: {name}={shorten(value)} is not allowed; allowed: {choices}")


def list_choices(value: object, allowed: Iterable[object]) -> str:
    """What is allowed, for an error about `value`: `a, b`, or `a, b; did you mean b?` where one is spelled alike."""
    names = [str(choice) for choice in allowed]
    by_lower = {name.lower(): name for name in names}
    nearest = get_close_matches(str(value)[:_LONGEST_NAME].lower(), by_lower, n=1)
    return ", ".join(names) + (f"; did you mean {by_lower[nearest[0]]}?" if nearest else "")


def shorten(value: object, limit: int = 80) -> str:
    """`value` as Python would show it, cut: prompts and outputs never go whole into an error."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= limit else text[:limit] + "…") if isinstance(value, str) else text[:limit]
