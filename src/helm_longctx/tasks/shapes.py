"""Checks of values that were read from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helm_longctx.errors import InputError, shorten


@dataclass(frozen=True)
class Shape:
    """A kind of value.

    Args:
        about: its description in errors, e.g. `a list of texts`.
        fits: whether a value is of this kind.
    """

    about: str
    fits: Callable[[Any], bool]

    def check(self, name: str, value: Any) -> None:
        """Check that a value is of this kind.

        Raises:
            InputError: the value is of another kind. The message starts with `name`.
        """
        if not self.fits(value):
            raise InputError(f"{name} must be {self.about}, found {shorten(value)}")


def is_text(value: Any) -> bool:
    """Whether a value is a string."""
    return isinstance(value, str)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer. `True` and `False` are not, although they are integers in Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a number; `True` and `False` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Make a check for lists whose items all pass the check `fits`."""
    return lambda value: isinstance(value, list) and all(map(fits, value))


TEXT = Shape("text", is_text)
TEXTS = Shape("a list of texts", are_all(is_text))
