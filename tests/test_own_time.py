"""Tests of limits that do not depend on what else the machine does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.own_time import wait_in_own_time

SLEEPS = "import time; time.sleep(1.5)"
WORKS = "import time\nwhile time.process_time() < 1: pass"


def start(code: str) -> subprocess.Popen[str]:
    """Start Python without the packages of the environment."""
    return subprocess.Popen([sys.executable, "-S", "-c", code], text=True)


@pytest.mark.parametrize(("code", "least"), [(SLEEPS, 1.2), (WORKS, 0.8)])
def test_work_and_waits_count(code: str, least: float) -> None:
    """A program's own time is what it works, and what it waits for something else than a processor."""
    assert wait_in_own_time(start(code), 60) > least


@pytest.mark.parametrize("code", [SLEEPS, WORKS])
def test_a_limit_ends_the_wait(code: str) -> None:
    """A program that has used up its limit is reported while it still runs."""
    program = start(code)
    with pytest.raises(subprocess.TimeoutExpired):
        wait_in_own_time(program, 0.3)
    assert program.poll() is None
    program.wait()


def test_excused_waits_do_not_count() -> None:
    """What a program waits for a slow server is not its own time."""
    assert wait_in_own_time(start(SLEEPS), 1.0, lambda: True) < 1.0
