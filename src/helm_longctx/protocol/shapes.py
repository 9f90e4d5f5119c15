"""What a value that was read from a file must be, and how an error says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helm_longctx.errors import InputError, shorten


@dataclass(frozen=True)
class Shape:
    """A kind of value.

    Args:
        about: what it is, for errors, e.g. `a list of texts`.
        fits: whether a value is one.
    """

    about: str
    fits: Callable[[Any], bool]

    def check(self, name: str, value: Any) -> None:
        """Refuse another kind of value.

        Raises:
            InputError: `value` is not of this kind.
        """
        if not self.fits(value):
            raise InputError(f"{name} must be {self.about}, found {shorten(value)}")


def is_text(value: Any) -> bool:
    """Whether it is a string."""
    return isinstance(value, str)


def is_whole(value: Any) -> bool:
    """Whether it is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def are_all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether it is a list of such values."""
    return lambda value: isinstance(value, list) and all(map(fits, value))


TEXT = Shape("text", is_text)
TEXTS = Shape("a list of texts", are_all(is_text))
