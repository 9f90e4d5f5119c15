"""Lets tests run programs only where this machine has a sandbox and a compiler."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.longproc.tasks import check_programs
from helm_longctx.errors import InputError
from helm_longctx.run_settings import SANDBOX
from helm_longctx.tasks.sandbox import BUBBLEWRAP


def require_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow programs to be run, or skip the test and say what the machine lacks."""
    monkeypatch.setenv(SANDBOX, BUBBLEWRAP)
    try:
        check_programs()
    except InputError as error:
        pytest.skip(f"programs cannot be run here: {error}")
