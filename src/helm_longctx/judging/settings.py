"""Environment variables about asking judges."""

from __future__ import annotations

from helm_longctx.settings import number_setting

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
    return number_setting(name, DEFAULTS[name], whole=name in (READINGS, PARALLEL))


def check_settings() -> None:
    """All of them, before anything is sent.

    Raises:
        InputError: as `setting`.
    """
    for name in DEFAULTS:
        setting(name)
