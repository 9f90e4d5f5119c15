"""The one error that users are meant to read."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: a run-entry argument, an option, a file. The message is one line that a user can act on."""


def bad_argument(where: str, name: str, value: object, allowed: Iterable[object] | str) -> InputError:
    """An `InputError` that names the argument, the value and what is allowed."""
    choices = allowed if isinstance(allowed, str) else ", ".join(str(choice) for choice in allowed)
    return InputError(f"{where}: {name}={shorten(value)} is not allowed; allowed: {choices}")


def shorten(value: object, limit: int = 80) -> str:
    """`value` as Python would show it, cut: prompts and outputs never go whole into an error."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= limit else text[:limit] + "…") if isinstance(value, str) else text[:limit]
