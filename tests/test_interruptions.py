"""Tests of what Ctrl-C and SIGTERM do to processes that a command has started by a fork."""

from __future__ import annotations

import signal
import time
from contextlib import AbstractContextManager
from multiprocessing import get_context

import pytest

from helm_longctx.interruptions import interruptible, stoppable


@pytest.mark.parametrize(
    "block", [stoppable(), interruptible(lambda: "kept")], ids=["command", "call"]
)
def test_a_forked_process_ends_as_usual(
    block: AbstractContextManager[None], capfd: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM ends a forked process at once and without a line, as a pool of processes expects."""
    with block:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        for _ in range(10):
            child = get_context("fork").Process(target=time.sleep, args=(60,))
            child.start()
            child.terminate()
            child.join(30)
            assert child.exitcode == -signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert capfd.readouterr() == ("", "")
