"""Tests of the plugin that runs tests in forks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

CONFTEST = """
import os, pytest

@pytest.fixture(scope="session")
def process(tmp_path_factory):
    yield os.getpid()
    print("session", "ends", flush=True)
    with open(os.environ["ENDS"], "a") as file:
        file.write(f"{os.getpid()} {tmp_path_factory.getbasetemp().name}\\n")
"""

SHARED = """
import os, pytest

COLLECTED_IN = os.getppid()

@pytest.fixture(scope="module")
def made():
    made = []
    yield made
    assert made == [0, 1, 2]

@pytest.mark.parametrize("number", range(3))
def test_module(made, process, number):
    assert process == os.getpid() != COLLECTED_IN
    made.append(number)
"""

FAILING = """
import os, pytest, warnings

def test_fails(process):
    print("what the test", "has printed")
    assert 1 == 2

def test_is_skipped(process):
    pytest.skip("no reason")

def test_warns(process):
    warnings.warn("a warning of a test")
"""

ENDING = """
import os

def test_first(process):
    pass

def test_ends_its_process(process):
    os._exit(7)

def test_last(process):
    pass
"""


def run_forked(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with the plugin."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.forks"]
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "ENDS": str(folder / "ends"),
    }
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "-ra", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_forks_report_all_that_pytest_reports(tmp_path: Path) -> None:
    """Results, printed texts, skips and warnings are reported, and a test that ends its process costs only itself."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(3):
        (tmp_path / f"test_shared_{number}.py").write_text(SHARED)
    (tmp_path / "test_failing.py").write_text(FAILING)
    (tmp_path / "test_ending.py").write_text(ENDING)
    done = run_forked(tmp_path, "--forks", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 12 passed, 1 skipped, 1 warning in " in done.stdout, done.stdout
    assert "test_ends_its_process: its process has ended with status 7" in done.stdout
    assert "what the test has printed" in done.stdout
    assert "Skipped: no reason" in done.stdout or "no reason" in done.stdout
    assert "a warning of a test" in done.stdout
    # Fixtures of a session end in each process, but in the one that was ended.
    ends = (tmp_path / "ends").read_text().split()
    assert len(ends) == 4
    assert len(set(ends)) == 4
    assert set(ends[1::2]) < {"fork0", "fork1", "fork2"}


def test_the_first_failure_can_end_the_run(tmp_path: Path) -> None:
    """With `-x` nothing is run after a failure."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_failing.py").write_text(FAILING)
    done = run_forked(tmp_path, "--forks", "1", "-x")
    assert re.search(r"^1 failed.* in |stopping after 1 failures", done.stdout, re.M)
    assert "passed" not in done.stdout
