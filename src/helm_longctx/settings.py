"""Numeric settings from environment variables."""

from __future__ import annotations

import os

from helm_longctx.errors import InputError


def number_setting(name: str, default: float, whole: bool = False) -> float:
    """Return the number in an environment variable, or the default if the variable is not set or empty.

    Raises:
        InputError: the value is not a number above 0, or not a whole number although `whole` is set.
    """
    value = os.environ.get(name) or str(default)
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6 or (whole and number % 1):
        raise InputError(f"{name}={value!r} is not allowed; allowed: a {'whole ' if whole else ''}number above 0")
    return number
