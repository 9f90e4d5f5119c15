"""Waits for a program, with a limit that does not depend on what else the machine does."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.programs import Program

LONGEST = 1800.0
"""Seconds after which a program hangs, however busy the machine is."""

_PAUSE = 0.05
"""Seconds between two looks at the program."""

_BUSY = frozenset("RD")
"""States of a thread that a processor or a disk works for, or that it would work for."""

_TICKS = os.sysconf("SC_CLK_TCK")


def wait_in_own_time(
    program: Program | subprocess.Popen[Any],
    limit: float,
    is_held: Callable[[], bool] = lambda: False,
) -> float:
    """Wait for the end of a program, and return its own time in seconds.

    Own time is what processors worked for the program, and what it waited for something else than a processor. On a
    machine without other work, it is the time that has passed.

    Args:
        limit: the most own time, in seconds.
        is_held: whether the program now waits for something that does not count, such as a slow server.

    Raises:
        subprocess.TimeoutExpired: the program has used up the limit, or hangs.
    """
    begin = time.monotonic()
    last = begin
    waited = 0.0
    worked = 0.0
    while True:
        with suppress(subprocess.TimeoutExpired):
            program.wait(_PAUSE)
            return waited + worked
        now = time.monotonic()
        with suppress(OSError):  # it has ended since
            worked = read_processor_time(program.pid)
            if not _is_busy(program.pid) and not is_held():
                waited += now - last
        last = now
        if waited + worked > limit or now - begin > LONGEST:
            raise subprocess.TimeoutExpired("program", limit)


def _is_busy(process: int) -> bool:
    """Return whether a thread of a process works, or waits for a processor or a disk."""
    stats = Path(f"/proc/{process}/task").glob("*/stat")
    return any(_read_stat(stat)[0] in _BUSY for stat in stats)


def read_processor_time(process: int) -> float:
    """Return the seconds that processors worked for a process and for its children that have ended."""
    fields = _read_stat(Path(f"/proc/{process}/stat"))
    ticks = sum(int(count) for count in fields[11:15])
    return ticks / _TICKS


def _read_stat(path: Path) -> list[str]:
    """Return the fields of a `stat` file from the state on. The name before it can have any character."""
    return path.read_text().rpartition(")")[2].split()
