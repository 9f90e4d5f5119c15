"""The error for mistakes in a user's input, and functions that write its message."""

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST_NAME = 200
"""Number of characters of a value that are compared with allowed names. Comparing a whole prompt would take minutes."""


class InputError(ValueError):
    """An error in a user's input, such as a run-entry argument, an option or a file.

    The message is one line. It names the argument and the value, and says what to do.

    Attributes:
        argument: the argument of a run entry that is wrong. Empty if that is not known.
    """

    def __init__(self, message: str = "", argument: str = ""):
        super().__init__(message)
        self.argument = argument


class ShapeError(InputError):
    """Data do not have the files, columns or types that a loader expects."""


class DamagedRunError(InputError):
    """A file of a run is missing or damaged. Other runs of the suite can still be used."""


class NotKeptError(InputError):
    """What was paid for cannot be kept, so more of it would be paid for again."""


class UnsupportedHelmError(InputError):
    """The installed HELM lacks something that this package uses."""


class PreconditionError(InputError):
    """Rows cannot be judged, because more rows, a tokenizer or a package is needed. The rows may be right."""


def is_format_error(error: BaseException) -> bool:
    """Whether an error is typical of code that reads data in an unexpected format.

    Panics of libraries in Rust count, and so do groups of such errors, which HELM raises when it reads its files. An
    `InputError` does not count, because it already says what is wrong and what to do.
    """
    if isinstance(error, InputError):
        return False
    kinds = (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    )
    group = getattr(error, "exceptions", ())
    return (
        isinstance(error, kinds)
        or type(error).__name__ == "PanicException"
        or any(map(is_format_error, group))
    )


def error_text(error: BaseException) -> str:
    """Return the text of an exception, and the body of the server's response if the exception has one.

    The texts of most packages contain the body. Since openai 3, its texts contain only the body's message.
    """
    text = str(error)
    body = getattr(error, "body", None)
    lacks_body = (
        bool(body) and isinstance(body, str | dict | list) and str(body) not in text
    )
    return f"{text} - {body}" if lacks_body else text


def bad_argument(
    where: str,
    name: str,
    value: object,
    allowed: Iterable[object] | str,
) -> InputError:
    """Return an `InputError` with an argument, its value, and what is allowed: names, or a text that describes it."""
    advice = (
        f"give {allowed}" if isinstance(allowed, str) else list_choices(value, allowed)
    )
    message = f"{where}: {name}={shorten(value)} is invalid; {advice}"
    return InputError(message, argument=name)


def describe_count(number: int, noun: str) -> str:
    """Return a number of things, such as `1 run` or `2,000 runs`.

    Args:
        noun: the singular of a noun whose plural ends in "s".
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def describe_all(number: int, noun: str) -> str:
    """Return all of several things, such as `both models` or `all 3 models`.

    Args:
        number: at least 2.
        noun: as for `describe_count`.
    """
    if number == 2:
        return f"both {noun}s"
    return f"all {describe_count(number, noun)}"


_MOST_CHOICES = 30
"""Most names that an error lists."""


def list_choices(value: object, allowed: Iterable[object]) -> str:
    """Say what to choose instead of `value`: `choose from a, b`, or `did you mean b? Choose from a, b`.

    The question is there if a name has a similar spelling. A single name is `give a`. Without names the text is empty.
    """
    names = [str(choice) for choice in allowed]
    if len(names) < 2:
        return f"give {names[0]}" if names else ""
    similar = find_similar(value, names)
    shown = ", ".join(names[:_MOST_CHOICES])
    if len(names) > _MOST_CHOICES:
        shown += f" and {len(names) - _MOST_CHOICES} others"
    return (
        f"did you mean {similar[0]}? Choose from {shown}"
        if similar
        else f"choose from {shown}"
    )


def list_first(names: Iterable[str], most: int | None) -> str:
    """Return the first names, and how many more there are, such as `a, b and 3 more`; all names if `most` is None."""
    names = list(names)
    shown = ", ".join(names[:most])
    if most is not None and len(names) > most:
        return f"{shown} and {len(names) - most} more"
    return shown


def suggest(value: object, names: Iterable[str], most: int = 1) -> str:
    """Return `; did you mean b?` for up to `most` names with the most similar spelling; empty if none is similar."""
    similar = find_similar(value, names, most)
    return f"; did you mean {', '.join(similar)}?" if similar else ""


def find_similar(
    value: object,
    names: Iterable[str],
    most: int = 1,
    likeness: float = 0.6,
) -> list[str]:
    """Return up to `most` names with a similar spelling, the most similar first. Equal names have the likeness 1."""
    by_lower = {}
    for name in names:
        if len(name) <= _LONGEST_NAME:
            by_lower[name.lower()] = name
    similar = get_close_matches(
        str(value)[:_LONGEST_NAME].lower(), by_lower, n=most, cutoff=likeness
    )
    return [by_lower[name] for name in similar]


def shorten(value: object, limit: int = 80) -> str:
    """Return the start of a value's `repr`, so that errors never contain a whole prompt or output."""
    text = value if isinstance(value, str) else repr(value)
    return (
        repr(text if len(text) <= limit else text[:limit] + "…")
        if isinstance(value, str)
        else text[:limit]
    )
