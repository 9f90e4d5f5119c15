"""Numbers that a user sets in the environment."""

from __future__ import annotations

import os

from helm_longctx.errors import InputError


def number_setting(name: str, default: float, whole: bool = False) -> float:
    """The value of an environment variable; the default where it is not set.

    Raises:
        InputError: it is no number above 0, or no whole one where `whole` asks for it.
    """
    given = os.environ.get(name) or str(default)
    try:
        number = float(given)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6 or (whole and number % 1):
        raise InputError(f"{name}={given!r} is not allowed; allowed: a {'whole ' if whole else ''}number above 0")
    return number
