"""Rounds of runs with Ray on this machine, in which workers or the command are killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from helm_longctx.run_settings import WORKERS
from tests.chaos.chaos import ENTRIES, Chaos, ChaosError
from tests.chaos.processes import Attempt
from tests.support.servers import faults
from tests.support.servers.llm import asked_again

OURS = "helm_longctx.runner.LongContextRunner"
RAY = "helm_longctx.runner.machines.RayRunner"
IN_FLIGHT = 8
"""Requests that two workers can have in flight."""

PATIENCE = 200.0
"""Seconds in which a run must end. Ray takes many to start."""


def kill_ray(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Kill a worker, after which the run goes on, or the command, after which another runner completes the run.

    Raises:
        ChaosError: the run does not go on, or a request that was not in flight was answered twice.
    """
    run = chaos.make_run(
        folder,
        ENTRIES[0],
        rng,
        environment={WORKERS: "2", "RAY_USAGE_STATS_ENABLED": "0"},
    )
    expected = chaos.results_undisturbed(run.entry)
    plain = run.arguments
    run.arguments = [RAY if word == OURS else word for word in run.arguments]
    chaos.server.plan, chaos.server.model.slow = faults.none, 0.8
    attempt = run.start()
    _await_calls(chaos, attempt, rng.randint(1, 16))
    workers = list(_workers(attempt.process))
    if workers and rng.random() < 0.6:
        os.kill(rng.choice(workers), signal.SIGKILL)
        chaos.tally.events["kills of Ray's workers"] += 1
    else:
        attempt.send(signal.SIGKILL)
        chaos.tally.events["kills of Ray's command"] += 1
    if not attempt.ended_by_itself(PATIENCE):
        raise ChaosError(f"it did not end within {PATIENCE:.0f} s")
    if attempt.status not in (0, -signal.SIGKILL):
        raise ChaosError(
            f"status {attempt.status}: {(folder / 'log').read_text()[-500:]}"
        )
    calls = list(chaos.server.calls)
    run.arguments = plain
    run.check()
    chaos.finish(run, expected)
    again = asked_again(
        [*calls, *(() if chaos.server.calls == calls else chaos.server.calls)]
    )
    if len(again) > IN_FLIGHT:
        raise ChaosError(f"{len(again)} requests were answered twice")
    chaos.tally.events["requests answered twice, which were in flight"] += len(again)


def _await_calls(chaos: Chaos, attempt: Attempt, due: int) -> None:
    end = time.monotonic() + PATIENCE
    while (
        len(chaos.server.calls) < due
        and time.monotonic() < end
        and not attempt.ended(0.01)
    ):
        pass


def _workers(process: int) -> Iterator[int]:
    """Yield the processes of Ray's workers that ask the requests of a command."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (path / "cmdline").read_bytes().startswith(
                b"ray::ask_shard"
            ) and process in _ancestors(int(path.name)):
                yield int(path.name)


def _ancestors(process: int) -> Iterator[int]:
    while process > 1:
        process = int(
            Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
        )
        yield process
