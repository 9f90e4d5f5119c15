"""Tests of settings from the environment."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.helmet.judge import RubricAnnotator
from helm_longctx.errors import InputError
from helm_longctx.run_settings import (
    JUDGE_PARALLEL,
    JUDGE_READINGS,
    JUDGE_TIMEOUT,
    JUDGE_WAIT,
    JudgeSettings,
    settings_in_use,
)


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults apply where nothing is set, and a variable is read anew each time."""
    for name in (JUDGE_WAIT, JUDGE_TIMEOUT, JUDGE_READINGS, JUDGE_PARALLEL):
        monkeypatch.delenv(name, raising=False)
    assert settings_in_use().judge == JudgeSettings(
        wait=2, timeout=300, readings=3, parallel=8
    )
    monkeypatch.setenv(JUDGE_WAIT, "0.01")
    assert settings_in_use().judge.wait == 0.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (JUDGE_WAIT, "soon"),
        (JUDGE_TIMEOUT, "-1"),
        (JUDGE_READINGS, "0"),
        (JUDGE_READINGS, "2.5"),
        (JUDGE_PARALLEL, "nan"),
    ],
)
def test_wrong_values(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong value is refused by name before anything is sent, whoever judges."""
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"{name}='{value}' is invalid"):
        RubricAnnotator.check("auto")
