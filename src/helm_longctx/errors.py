"""The error for mistakes in a user's input, and functions that write its message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST_NAME = 200
"""Number of characters of a value that are compared with allowed names. Comparing a whole prompt would take minutes."""


class InputError(ValueError):
    """An error in a user's input, such as a run-entry argument, an option or a file.

    The message is one line. It names the argument, the value, and what is allowed or what to do.
    """


def is_format_error(error: BaseException) -> bool:
    """Whether an error is typical of code that reads data in an unexpected format.

    Panics of libraries in Rust count, and so do groups of such errors, which HELM raises when it reads its files.
    """
    kinds = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
    group = getattr(error, "exceptions", ())
    return isinstance(error, kinds) or type(error).__name__ == "PanicException" or any(map(is_format_error, group))


def bad_argument(where: str, name: str, value: object, allowed: Iterable[object] | str) -> InputError:
    """Return an `InputError` that names an argument, its value, what is allowed, and the most similar allowed name."""
    choices = allowed if isinstance(allowed, str) else list_choices(value, allowed)
    return InputError(f"{where}: {name}={shorten(value)} is not allowed; allowed: {choices}")


def list_choices(value: object, allowed: Iterable[object]) -> str:
    """List what is allowed instead of `value`: `a, b`, or `a, b; did you mean b?` if one has a similar spelling."""
    names = [str(choice) for choice in allowed]
    return ", ".join(names) + suggest(value, names)


def suggest(value: object, names: Iterable[str], most: int = 1) -> str:
    """Return `; did you mean b?` for the names with the most similar spelling; empty if none is similar.

    Args:
        most: largest number of names.
    """
    similar = find_similar(value, names, most)
    return f"; did you mean {', '.join(similar)}?" if similar else ""


def find_similar(value: object, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the names with the most similar spelling, at most `most`, the most similar one first."""
    by_lower = {name.lower(): name for name in names if len(name) <= _LONGEST_NAME}
    return [by_lower[name] for name in get_close_matches(str(value)[:_LONGEST_NAME].lower(), by_lower, n=most)]


def shorten(value: object, limit: int = 80) -> str:
    """Return the start of a value's `repr`, so that errors never contain a whole prompt or output."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= limit else text[:limit] + "…") if isinstance(value, str) else text[:limit]
