"""Runs under faults, kills and restarts that a seed chooses; `rounds` and other modules of this folder add further faults.

A round starts one run again and again while its server fails and its process is killed, and then without faults until it is
complete. Two things must hold:

- The results are those of an undisturbed run: answers, prompts, and statistics but for how answers came.
- A request whose answer stands in the run's journal is never asked again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from helm_longctx.runs.journal import NAME, answer_files
from helm_longctx.runs.lookup import full_prompt
from helm_longctx.tasks.metric_names import MEASURED
from tests.chaos.processes import Attempt, start
from tests.chaos.server import RestartableServer, serve, tag, tags
from tests.judging.deployments import write_judges
from tests.support.servers import faults
from tests.support.servers.faults import Fault

ROOT = Path(__file__).parents[2]
ENTRIES = (
    "helmet_recall:task=json_kv,length=4k,num_samples=24",
    "helmet_recall:length=4k,num_samples=5",
)
KINDS = (
    Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.OVERLOADED, Fault.UNAUTHORIZED, Fault.TIMEOUT, Fault.DROPPED,
    Fault.CUT, Fault.ENDED, Fault.MALFORMED, Fault.PAGE, Fault.STRANGE, Fault.REFUSED, Fault.FILTERED,
)  # fmt: skip
"""Faults after which a request has no answer. Those that give another answer would change the results."""

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TIMEOUT = 2.0
"""Seconds of the client's patience."""

PATIENCE = 60.0
"""Seconds of its own time in which an attempt must end, and in which a process must end that was told to."""

WORK = 1.0
"""Processor seconds of a whole run, about."""

CALM = 3
"""Attempts without faults in which a run must be complete."""


class ChaosError(AssertionError):
    """An error that says what does not hold although it must."""


@dataclass
class Tally:
    """A record of what was done in all rounds."""

    attempts: int = 0
    requests: int = 0
    restarts: int = 0
    torn: int = 0
    slowest_end: float = 0.0
    rounds: Counter[str] = field(default_factory=Counter)
    signals: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        done = f"{self.attempts} attempts, {self.requests} requests, {self.restarts} restarts"
        ended = f"{self.torn} torn journals, at most {self.slowest_end:.1f} s from a signal to the end"
        counts = (
            f"{name}: "
            + ", ".join(
                f"{kind} {count}" for kind, count in getattr(self, name).most_common()
            )
            for name in ("rounds", "events", "signals", "faults")
        )
        return "\n".join((f"{done}, {ended}", *counts))


class Chaos:
    """The processes, the server and the folder that all rounds share.

    Args:
        server: the server of models.
        folder: a folder that holds one for each round.
    """

    def __init__(self, server: RestartableServer, folder: Path):
        self.server = server
        self.folder = folder
        self._undisturbed: dict[tuple[str, int], dict[str, Any]] = {}
        self.tally = Tally()

    def make_run(
        self, folder: Path, entry: str, rng: random.Random, **order: Any
    ) -> Run:
        """Return a run in a folder."""
        return Run(self.server, folder, entry, rng, self.tally, **order)

    def finish(self, run: Run, expected: dict[str, Any] | None = None) -> None:
        """Complete a run without faults.

        Args:
            expected: the results of an undisturbed run; None to make one.

        Raises:
            ChaosError: the results differ from those of an undisturbed run, or a request was sent again.
        """
        for _ in range(CALM):
            if not run.is_complete:
                run.attempt_calmly()
        if not run.is_complete:
            raise ChaosError(f"not complete after {CALM} attempts without faults")
        expected = expected or self.results_undisturbed(run.entry)
        for name, value in run.results().items():
            if value != expected[name]:
                raise ChaosError(f"{name} differ from an undisturbed run's")

    def results_undisturbed(self, entry: str) -> dict[str, Any]:
        """Return the results of an undisturbed run, which is made once."""
        key = entry, self.server.model.padding
        if key not in self._undisturbed:
            folder = self.folder / f"undisturbed{len(self._undisturbed)}"
            run = Run(self.server, folder, entry, random.Random(0), Tally())
            run.attempt_calmly()
            self._undisturbed[key] = run.results()
        return self._undisturbed[key]


class Run:
    """A run that is attempted until it is complete.

    Args:
        order: what all commands are started with (see `tests.chaos.processes.start`).

    Attributes:
        journaled: tags of the answers that stood in the journals when the last attempt had ended.
        path: the run's folder.
    """

    def __init__(
        self,
        server: RestartableServer,
        folder: Path,
        entry: str,
        rng: random.Random,
        tally: Tally,
        **order: Any,
    ):
        self._server = server
        self._rng = rng
        self._tally = tally
        self.folder = folder
        self.entry = entry
        self.order = order
        self.journaled = set[str]()
        write_deployment(folder, server.openai)
        server.forget()
        cache = [] if rng.random() < 0.5 else ["--disable-cache"]
        self.arguments = [
            "--run-entries",
            f"{entry},model=chaos/model",
            "--suite",
            "s",
            "-m",
            "999",
            *cache,
        ]
        self.arguments += [
            "--local-path",
            str(folder),
            "--num-threads",
            str(rng.randint(1, 4)),
        ]
        self.arguments += [
            "--runner-class-name",
            "helm_longctx.runner.LongContextRunner",
        ]

    @property
    def path(self) -> Path | None:
        """Return the run's folder; None if it does not exist yet."""
        return next(self.folder.glob("benchmark_output/runs/s/helmet*"), None)

    @property
    def is_complete(self) -> bool:
        """Return whether all files exist and no answer is missing."""
        path = self.path
        return (
            path is not None
            and (path / "per_instance_stats.json").exists()
            and not answer_files(path)
        )

    def attempt_disturbed(self, **order: Any) -> None:
        """Start the command while the server fails, and maybe restart the one and kill the other."""
        rng = self._rng
        kinds = rng.sample(KINDS, rng.randint(1, 4))
        self._server.plan = faults.share(
            rng.choice([0.05, 0.2, 0.5]), kinds, seed=rng.randrange(2**32)
        )
        self._server.model.slow = rng.choice([0.0, 0.1])
        attempt = self.start(**order)
        if rng.random() < 0.3:
            self.await_moment(attempt)
            self._server.restart(rng.uniform(0, 0.3))
            self._tally.restarts += 1
        if rng.random() < 0.8:
            self.await_moment(attempt)
            self.end(attempt, rng.choice(SIGNALS))
        self.wait(attempt)
        self._tally.faults.update(
            fault.name for fault in self._server.failed().elements()
        )
        self._tear()
        self.check()

    def attempt_calmly(self) -> None:
        """Start the command without faults; it ends by itself."""
        self._server.plan, self._server.model.slow = faults.none, 0.0
        self.wait(self.start())
        self.check()

    def start(self, **order: Any) -> Attempt:
        """Start the command, and count the calls to the server from here."""
        self._server.forget()
        return self.start_again(**order)

    def start_again(self, **order: Any) -> Attempt:
        """Start the command beside another process with the same command."""
        self._tally.attempts += 1
        return start(self.folder, self.arguments, **{**self.order, **order})

    def await_moment(self, attempt: Attempt) -> None:
        """Wait for a random moment: while the process starts, sends requests, or writes the results."""
        # Work is counted, and not time: on a busy machine, the process would still be starting.
        most = self._rng.uniform(0, WORK)
        due = self._rng.randint(0, 30)
        while (
            len(self._server.calls) < due
            and attempt.processor_time() < most
            and not attempt.ended(0.002)
        ):
            pass
        attempt.ended(self._rng.uniform(0, 0.1))

    def end(self, attempt: Attempt, what: signal.Signals) -> None:
        """Send a signal, which must end the process soon.

        Raises:
            ChaosError: the process does not end.
        """
        start = time.monotonic()
        attempt.send(what)
        self._tally.signals[what.name] += 1
        if not attempt.ended_by_itself(PATIENCE):
            attempt.send(signal.SIGKILL)
            raise ChaosError(f"{what.name} did not end it within {PATIENCE:.0f} s")
        self._tally.slowest_end = max(self._tally.slowest_end, time.monotonic() - start)

    def wait(self, attempt: Attempt) -> None:
        """Wait until the process ends by itself.

        Raises:
            ChaosError: the process does not end.
        """
        if not attempt.ended_by_itself(PATIENCE):
            attempt.send(signal.SIGKILL)
            raise ChaosError(f"it did not end within {PATIENCE:.0f} s")

    def _tear(self) -> None:
        """Sometimes cut off the end of the journal or add half a line, as a crash of the machine does."""
        journal = self.path / NAME if self.path else None
        if journal is None or not journal.exists() or self._rng.random() < 0.5:
            return
        self._tally.torn += 1
        if self._rng.random() < 0.5:
            size = journal.stat().st_size
            os.truncate(journal, max(0, size - self._rng.randint(1, 400)))
        else:
            with journal.open("ab") as file:
                file.write(b'["0123456789abcdef", {"success": tr')

    def check(self) -> None:
        """Check that no request was sent whose answer was in a journal when the command was started.

        Raises:
            ChaosError: a request was sent although its answer was in a journal.
        """
        asked = {tag(call.prompt) for call in self._server.calls}
        self._tally.requests += len(self._server.calls)
        if again := asked & self.journaled:
            raise ChaosError(
                f"{len(again)} requests were asked again, though their answers stand in the journal"
            )
        journals = answer_files(self.path) if self.path else []
        # A last line without its end is no answer.
        self.journaled = tags(
            b"".join(journal.read_bytes().rpartition(b"\n")[0] for journal in journals)
        )

    def results(self) -> dict[str, Any]:
        """Return the results that must be the same whatever happened during the run."""
        path = self.path
        assert path
        states = json.loads((path / "scenario_state.json").read_bytes())[
            "request_states"
        ]
        stats = json.loads((path / "stats.json").read_bytes())
        statistics = json.loads((path / "per_instance_stats.json").read_bytes())
        return {
            "statistics": [row for row in stats if row["name"]["name"] not in DELIVERY],
            "statistics of instances": [
                (
                    row["instance_id"],
                    [s for s in row["stats"] if s["name"]["name"] not in DELIVERY],
                )
                for row in statistics
            ],
            "answers": [
                [answer["text"] for answer in state["result"]["completions"]]
                for state in states
            ],
            "prompts": {
                state["instance"]["id"]: full_prompt(path, state["instance"]["id"])
                for state in states
            },
        }


DELIVERY = (*MEASURED, "request_cached")
"""Statistics of how answers came, which differ although the answers are equal."""


def write_deployment(folder: Path, address: str) -> None:
    """Write the deployment `chaos/model`, with HELM's client."""
    write_judges(folder, {"chaos/model": address})
    path = folder / "model_deployments.yaml"
    content = yaml.safe_load(path.read_text())
    content["model_deployments"][0]["client_spec"]["args"]["timeout"] = TIMEOUT
    path.write_text(yaml.safe_dump(content))


@contextmanager
def chaos(folder: Path) -> Iterator[Chaos]:
    """Run a server until the block ends."""
    with serve() as server:
        yield Chaos(server, folder)
