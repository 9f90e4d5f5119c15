"""Environment variables about asking judges."""

from __future__ import annotations

import os

from helm_longctx.errors import InputError

WAIT = "HELM_LONGCTX_JUDGE_WAIT"
"""The longest first wait after a failed call in seconds; it doubles with each."""

TIMEOUT = "HELM_LONGCTX_JUDGE_TIMEOUT"
"""Seconds that a call may take. Providers' libraries wait ten minutes."""

READINGS = "HELM_LONGCTX_JUDGE_READINGS"
"""How many replies may have no verdict before a question counts as failed."""

PARALLEL = "HELM_LONGCTX_JUDGE_PARALLEL"
"""How many calls to judges may be in flight."""

DEFAULTS = {WAIT: 2.0, TIMEOUT: 300.0, READINGS: 3.0, PARALLEL: 8.0}


def setting(name: str) -> float:
    """Its value.

    Raises:
        InputError: it is no number above 0; READINGS and PARALLEL are whole numbers.
    """
    given = os.environ.get(name) or str(DEFAULTS[name])
    try:
        number = float(given)
    except ValueError:
        number = 0.0
    whole = name in (READINGS, PARALLEL)
    if not 0 < number < 1e6 or (whole and number % 1):
        raise InputError(f"{name}={given!r} is not allowed; allowed: a {'whole ' if whole else ''}number above 0")
    return number


def check_settings() -> None:
    """All of them, before anything is sent.

    Raises:
        InputError: as `setting`.
    """
    for name in DEFAULTS:
        setting(name)
