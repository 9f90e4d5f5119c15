"""Tests of settings from the environment."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.helmet.judge import RubricAnnotator
from helm_longctx.errors import InputError
from helm_longctx.judging.judge import (
    DEFAULTS,
    PARALLEL,
    READINGS,
    TIMEOUT,
    WAIT,
    setting,
)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults apply where nothing is set, and a variable is read anew each time."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    assert [setting(name) for name in (WAIT, TIMEOUT, READINGS, PARALLEL)] == [
        2,
        300,
        3,
        8,
    ]
    monkeypatch.setenv(WAIT, "0.01")
    assert setting(WAIT) == 0.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (WAIT, "soon"),
        (TIMEOUT, "-1"),
        (READINGS, "0"),
        (READINGS, "2.5"),
        (PARALLEL, "nan"),
    ],
)
def test_wrong_values(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong value is refused by name before anything is sent, whoever judges."""
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"{name}='{value}' is invalid"):
        RubricAnnotator.check("auto")
