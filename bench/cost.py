"""Measures what a command costs: seconds, processor seconds, and peak memory."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.02
"""Seconds between two readings of the peak."""


@dataclass(frozen=True)
class Cost:
    """Args: seconds, processor seconds, and peak memory in MB."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def measure_command(
    command: Sequence[str | Path],
    folder: Path,
    variables: Mapping[str, str] | None = None,
) -> Cost:
    """Run a command in a folder, and return what it costs. Its output goes to the folder's file `log`.

    Args:
        variables: environment variables beside those of this process.

    Raises:
        RuntimeError: the command fails; the message has the end of its output.
    """
    # Users' packages are compiled when pip installs them; a process must not compile ours anew in each turn.
    environment = {**os.environ, **(variables or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    cpu_seconds = _cpu_seconds_of_children()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, peak_mb(process.pid))
            time.sleep(INTERVAL)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{command} failed: {(folder / 'log').read_text()[-3000:]}")
    return Cost(seconds, _cpu_seconds_of_children() - cpu_seconds, peak)


def peak_mb(process: int | str = "self") -> float:
    """Return the peak memory in MB that a process has had so far; 0 for one that has ended.

    `resource.getrusage` and `os.wait4` would include the memory that the parent had when it started the process.
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(
        (
            int(line.split()[1]) * 1024 / 1e6
            for line in lines
            if line.startswith("VmHWM")
        ),
        0.0,
    )


def _cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
