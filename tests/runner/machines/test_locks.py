"""Shards and their locks."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.helm_log import helm_log
from helm_longctx.locks import lock_run
from helm_longctx.runs import journal
from helm_longctx.runs.journal import SHARDS, Shard, lock_shard, wait_for_shards

SHARD = Shard(2, 4)
HOLD = """
import sys, time
from pathlib import Path
from helm_longctx.runs.journal import Shard, lock_shard
with lock_shard(Path(sys.argv[1]), Shard(2, 4)):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("text", ["", "4", "0/4", "5/4", "2/0", "a/b", "2/4/6", "-1/4"])
def test_wrong_shards_are_refused(text: str) -> None:
    """The error says what is allowed."""
    with pytest.raises(InputError, match="give 1/N to N/N"):
        Shard.parse(text)


def test_one_process_makes_a_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process waits until the first one is killed. The log names the file of the lock."""
    lines: list[str] = []
    monkeypatch.setattr(helm_log, "info", lines.append)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        with lock_shard(tmp_path, Shard(1, 4)):
            assert lines == []
        threading.Timer(0.5, process.kill).start()
        with lock_shard(tmp_path, SHARD):
            assert process.wait() == -signal.SIGKILL
    (line,) = lines
    assert str(tmp_path / "shards/2-of-4.lock") in line


def test_a_run_waits_for_its_shards(tmp_path: Path) -> None:
    """The thread that waits ends when the lock is released, and not before."""
    waiting = threading.Thread(target=wait_for_shards, args=(tmp_path,))
    with lock_shard(tmp_path, SHARD):
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive()


def test_no_shard_starts_while_the_run_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the process that makes the run."""
    monkeypatch.setattr(journal, "_LOCK_WAIT", 0.01)
    with (
        lock_run(tmp_path),
        pytest.raises(InputError, match="is in use by process"),
        lock_shard(tmp_path, SHARD),
    ):
        pass


@pytest.mark.parametrize("has_answers", [True, False])
def test_a_shard_that_fails_leaves_only_answers(
    has_answers: bool, tmp_path: Path
) -> None:
    """Without answers the run has no folder, because HELM's summarizer warns of folders without results."""
    run = tmp_path / "run"
    answers = tmp_path / "run/shards/a.jsonl"

    def fail() -> None:
        with lock_shard(run, SHARD):
            if has_answers:
                answers.touch()
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    assert run.exists() == has_answers
    assert list((run / "shards").glob("*")) == ([answers] if has_answers else [])


def test_a_folder_that_is_removed_while_a_shard_waits(tmp_path: Path) -> None:
    """A process whose shard failed removes a run's folder that has nothing else; the shard that waits makes it again."""
    run = tmp_path / "run"

    def take() -> bool:
        with lock_shard(run, Shard(1, 2)):
            return (run / SHARDS / "1-of-2.lock").exists()

    with ThreadPoolExecutor(1) as pool:
        with lock_run(run):
            waiting = pool.submit(take)
            time.sleep(0.5)
        assert waiting.result(20)
