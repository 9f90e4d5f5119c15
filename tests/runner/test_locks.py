"""Tests that only one process at a time makes a run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.locks import lock_run
from helm_longctx.models.baselines import lexical
from tests.e2e.commands import write_ready
from tests.runner.making import ENTRY, PlainClient, make_run, spec_of
from tests.support.processes import start
from tests.support.servers.llm import serve

HOLD = """
import sys, time
from pathlib import Path
from helm_longctx.locks import lock_run
with lock_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    """The message says which process holds the lock, where and since when, and a killed process releases it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(InputError) as refused, lock_run(tmp_path):
            pass
        process.kill()
    host = f"process {process.pid} on host {os.uname().nodename} since {time.strftime('%Y-')}"
    assert host in str(refused.value)
    with lock_run(tmp_path):
        assert (
            (tmp_path / ".lock.holder")
            .read_text()
            .startswith(f"process {os.getpid()} on host")
        )
    assert not (tmp_path / ".lock.holder").exists()


def test_a_run_that_is_being_made(tmp_path: Path) -> None:
    """A run that another process makes is refused before anything is sent, and can be made afterwards."""
    run = tmp_path / "benchmark_output/runs/s" / spec_of(ENTRY + "test/plain").name
    with (
        lock_run(run),
        pytest.raises(InputError, match=f"is in use by process {os.getpid()} on host"),
    ):
        make_run(tmp_path, ENTRY + "test/plain")
    assert PlainClient.asked == []
    make_run(tmp_path, ENTRY + "test/plain")
    assert len(PlainClient.asked) == 12


def test_the_same_command_twice(tmp_path: Path) -> None:
    """The second of two equal `helm-run` commands ends in one line while the first continues, and nothing is sent twice."""
    begun = threading.Event()
    go_on = threading.Event()

    def answer(prompt: str) -> str:
        begun.set()
        go_on.wait(200)
        return lexical.answer(prompt)

    with serve(answer) as server:
        write_ready(tmp_path, server.openai)
        first = start(tmp_path, [])
        assert begun.wait(100)
        assert start(tmp_path, [], log="second").wait(100) != 0
        go_on.set()
        assert first.wait(100) == 0, (tmp_path / "log").read_text()
    told = (tmp_path / "second").read_text()
    assert f"is in use by process {first.pid} on host" in told.splitlines()[-1]
    assert "Traceback" not in told
    assert len(server.calls) == len({call.prompt for call in server.calls}) == 40
