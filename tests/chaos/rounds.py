"""Rounds of runs on a machine that misbehaves: killed processes, a clock that jumps, a full disk, a second process."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from tests.chaos.chaos import ENTRIES, Chaos, ChaosError
from tests.chaos.processes import start
from tests.support.servers import faults
from tests.support.servers.llm import asked_again

LONG_ANSWER = 60_000
"""Characters of answers that make the journal the largest file of a run."""

SPOOL = 500_000
"""Bytes that are more than a run's largest other file has: the prompts."""

THREADS = 4
"""Requests that are in flight when a process is killed or interrupted, and are asked again by another one."""

JUMPS = (-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0)
"""Seconds by which the clock is set."""


def kill_runs(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Kill a run while its server fails."""
    run = chaos.make_run(folder, rng.choice(ENTRIES), rng)
    for _ in range(rng.randint(1, 4)):
        if not run.is_complete:
            run.attempt_disturbed()
    chaos.finish(run)


def set_clock(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Set the clock forward and back while a run is made and killed."""
    run = chaos.make_run(folder, rng.choice(ENTRIES), rng)
    for _ in range(rng.randint(1, 3)):
        if not run.is_complete:
            jumps = [
                (rng.uniform(0, 3), rng.choice(JUMPS)) for _ in range(rng.randint(1, 3))
            ]
            run.attempt_disturbed(clock=jumps)
            chaos.tally.events["clock jumps"] += len(jumps)
    chaos.finish(run)


def fill_disk(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Let no file grow beyond a size, which is reached in the middle of the journal.

    Raises:
        ChaosError: the run does not end with one line about the full disk.
    """
    chaos.server.model.padding = LONG_ANSWER
    try:
        run = chaos.make_run(folder, ENTRIES[0], rng)
        chaos.server.plan = faults.none
        attempt = run.start(file_limit=rng.randint(SPOOL, 20 * LONG_ANSWER))
        run.wait(attempt)
        run.check()
        log = (folder / "log").read_text()
        if (
            attempt.status == 0
            or "File too large; the answers are kept in" not in log.splitlines()[-1]
        ):
            raise ChaosError(f"status {attempt.status} with a full disk: {log[-300:]}")
        if "Traceback" in log or not run.journaled:
            raise ChaosError("a traceback, or no answer is kept")
        chaos.tally.events["full disks"] += 1
        chaos.finish(run)
    finally:
        chaos.server.model.padding = 0


def run_twice(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Give the same command twice at about the same time, and sometimes kill the first process.

    Raises:
        ChaosError: both processes sent the same request, or no process says that another one uses the run.
    """
    run = chaos.make_run(folder, ENTRIES[0], rng)
    chaos.server.plan, chaos.server.model.slow = faults.none, 0.5
    first = run.start()
    time.sleep(rng.choice((0.0, rng.uniform(0, 2))))
    second = run.start_again(log="second")
    is_killed = rng.random() < 0.5
    if is_killed:
        run.await_moment(first)
        run.end(first, signal.SIGKILL)
    run.wait(first)
    run.wait(second)
    logs = [
        (folder / name).read_text()
        for name in ("log", "second")
        if (folder / name).exists()
    ]
    if any("Traceback" in log for log in logs):
        raise ChaosError("a traceback")
    refused = sum("is in use by process" in log for log in logs)
    if refused > 1:
        raise ChaosError("each process was refused for the other")
    again = asked_again(chaos.server.calls)
    if len(again) > (THREADS if is_killed else 0):
        raise ChaosError(f"{len(again)} requests were answered twice")
    chaos.tally.events["second processes refused"] += refused
    chaos.tally.events["second processes"] += 1
    run.check()
    chaos.finish(run)


def run_shards(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Send the requests of two shards at the same time, and sometimes interrupt one.

    Raises:
        ChaosError: a request was answered twice.
    """
    run = chaos.make_run(folder, ENTRIES[0], rng)
    chaos.server.plan, chaos.server.model.slow = faults.none, 0.3
    entry = f"{run.entry},model=chaos/model"
    options = [
        entry,
        "--suite",
        "s",
        "-m",
        "999",
        "--local-path",
        str(folder),
        "--disable-cache",
    ]
    chaos.server.forget()
    attempts = [
        start(
            folder,
            ["helm-longctx", "shard", f"{number}/2", *options],
            log=f"shard{number}",
        )
        for number in (1, 2)
    ]
    is_interrupted = rng.random() < 0.5
    if is_interrupted:
        run.await_moment(attempts[0])
        run.end(attempts[0], rng.choice((signal.SIGINT, signal.SIGTERM)))
    for attempt in attempts:
        run.wait(attempt)
    again = asked_again(chaos.server.calls)
    if len(again) > (THREADS if is_interrupted else 0):
        raise ChaosError(f"{len(again)} requests were answered twice")
    run.check()
    chaos.tally.events["pairs of shards"] += 1
    chaos.finish(run)
