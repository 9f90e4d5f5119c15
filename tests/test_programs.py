"""Tests that a program which starts as a fork does what the installed program does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.programs import BIN, run, start
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import serve

TIMES = r"\d{4}-\d\d-\d\d [\d:,]+|\[[\d.]+s\]"
LINES = [
    ("helm-longctx", "--version"),
    ("helm-longctx", "lisst"),
    ("helm-longctx", "summarize", "--suite", "none"),
    ("helm-longctx", "prompts", "graphwalks:task=bfs,length=8k"),
    ("helm-run", "--run-entries", "helmet_recal:length=8k", "--suite", "s", "-m", "1"),
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_fork_is_as_the_installed_program(
    line: tuple[str, ...], tmp_path: Path
) -> None:
    """A fork and the installed program have the same output, errors and exit status."""
    forked = run(*line, folder=tmp_path)
    installed = subprocess.run(
        [str(BIN / line[0]), *line[1:]], cwd=tmp_path, capture_output=True, text=True
    )
    assert forked.returncode == installed.returncode
    for ours, theirs in (
        (forked.stdout, installed.stdout),
        (forked.stderr, installed.stderr),
    ):
        assert re.sub(TIMES, "", ours) == re.sub(TIMES, "", theirs)


def test_the_environment(tmp_path: Path) -> None:
    """A program has the given variables, also those that modules read when they are imported."""
    for variables in ({"COLUMNS": "60"}, {"COLUMNS": "60", "PYTHONWARNINGS": "error"}):
        printed = run("helm-longctx", "--help", folder=tmp_path, **variables).stdout
        assert max(map(len, printed.splitlines())) == 60
    warned = run(
        "helm-longctx", "--version", folder=tmp_path, PYTHONWARNINGS="nonsense"
    ).stderr
    assert "Invalid -W option ignored" in warned


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_signals(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """A program gets signals, and its status says how it ended."""
    with serve(str, faults.share(1, [Fault.TIMEOUT])) as server:
        words = ["models", "add", "my/model", "--url", server.address]
        process = start(
            "helm-longctx", *words, folder=tmp_path, output=tmp_path / "log"
        )
        while not server.calls and process.poll() is None:
            time.sleep(0.01)
        assert process.poll() is None, (tmp_path / "log").read_text()
        os.kill(process.pid, number)
        assert process.wait(60) == status
