"""Starts commands whose clock jumps, whose disk is full, and which never wait long."""

from __future__ import annotations

import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.support import programs
from tests.support.own_time import read_processor_time, wait_in_own_time

COMMANDS = ("helm-run", "helm-longctx")

LONGEST_WAIT = 0.05
"""Seconds that a retry waits at most; HELM's own waits take minutes."""


class Attempt:
    """A command that runs until it has ended."""

    def __init__(self, program: programs.Program):
        self._program = program

    @property
    def process(self) -> int:
        """Return the identifier of the process."""
        return self._program.pid

    @property
    def status(self) -> int:
        """Return the exit status, or minus the number of the signal that ended it; 0 while it runs."""
        return self._program.poll() or 0

    def ended(self, within: float) -> bool:
        """Wait for the end of the process, and return whether it came in time."""
        try:
            self._program.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ended_by_itself(self, within: float) -> bool:
        """Wait for the end, and return whether it came within so many seconds of the process's own time."""
        try:
            wait_in_own_time(self._program, within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def peak_memory(self) -> float:
        """Return the peak of the process's memory in MB; 0 if it has ended."""
        try:
            lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
        except OSError:
            return 0.0
        return next(
            (int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")),
            0.0,
        )

    def processor_time(self) -> float:
        """Return the seconds that processors have worked for the process; infinity if it has ended."""
        try:
            return read_processor_time(self.process)
        except OSError:
            return math.inf

    def send(self, what: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        self._program.send_signal(what)


def start(
    folder: Path,
    arguments: Sequence[str],
    environment: dict[str, str] | None = None,
    log: str = "log",
    clock: Sequence[Sequence[float]] = (),
    file_limit: int = 0,
) -> Attempt:
    """Start a command in a folder.

    Args:
        arguments: the command, `helm-run` if it is left out, and its arguments.
        log: the file to which its output is added.
        clock: jumps of the system's clock: after how many seconds, and by how many.
        file_limit: most bytes in a file; 0 for no limit.
    """
    line = list(arguments) if arguments[0] in COMMANDS else ["helm-run", *arguments]
    changes = partial(_prepare, [tuple(jump) for jump in clock], file_limit)
    variables = {"HELM_LONGCTX_WAIT": "0.01", **(environment or {})}
    return Attempt(
        programs.start(
            *line, folder=folder, output=folder / log, prepare=changes, **variables
        )
    )


def _prepare(jumps: Sequence[tuple[float, float]], file_limit: int) -> None:
    """Let the system's clock jump, let nothing sleep long, and limit files."""
    sleep = time.sleep
    now = time.time
    begin = time.monotonic()
    time.sleep = lambda seconds: sleep(min(seconds, LONGEST_WAIT))
    if jumps:
        time.time = lambda: (
            now() + sum(by for after, by in jumps if time.monotonic() - begin > after)
        )
    if file_limit:
        # Python would write cut modules, which later processes cannot import.
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
