"""Runs under faults, kills and restarts that a seed chooses: `make chaos`.

Each round starts one run again and again while its server fails and its process is killed, and then without faults until it is
complete. Two things must hold:

- The results are those of an undisturbed run: answers, prompts, and statistics but for how answers came.
- A request whose answer stands in the run's journal is never asked again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from helm_longctx.runs.journal import NAME
from helm_longctx.runs.prompts import full_prompt
from tests.chaos.server import RestartableServer, serve, tag, tags
from tests.judging.deployments import write_judges
from tests.servers import faults
from tests.servers.faults import Fault

ROOT = Path(__file__).parents[2]
ENTRIES = ("helmet_recall:task=json_kv,length=4k,num_samples=24", "helmet_recall:length=4k,num_samples=5")
KINDS = (
    Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.OVERLOADED, Fault.UNAUTHORIZED, Fault.TIMEOUT, Fault.DROPPED,
    Fault.CUT, Fault.ENDED, Fault.MALFORMED, Fault.PAGE, Fault.STRANGE, Fault.REFUSED, Fault.FILTERED,
)  # fmt: skip
"""Faults after which a request has no answer. Those that give another answer would change the results."""

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TIMEOUT = 2.0
"""Seconds of the client's patience."""

PATIENCE = 60.0
"""Seconds in which an attempt must end, and in which a process must end that was told to."""

CALM = 3
"""Attempts without faults in which a run must be complete."""


class ChaosError(AssertionError):
    """Something that must hold does not."""


@dataclass
class Tally:
    """What was done, over all rounds."""

    rounds: int = 0
    attempts: int = 0
    requests: int = 0
    restarts: int = 0
    torn: int = 0
    slowest_end: float = 0.0
    signals: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        done = f"{self.rounds} rounds, {self.attempts} attempts, {self.requests} requests, {self.restarts} restarts"
        counts = ", ".join(f"{name} {count}" for name, count in (self.signals + self.faults).most_common())
        return f"{done}, {self.torn} torn journals, at most {self.slowest_end:.1f} s from a signal to the end; {counts}"


class Forks:
    """Starts `helm-run` as forks of one process.

    Args:
        process: of `tests.chaos.child`.
    """

    def __init__(self, process: subprocess.Popen[str]):
        assert process.stdin
        assert process.stdout
        self._orders: IO[str] = process.stdin
        self._replies: IO[str] = process.stdout

    def start(self, folder: Path, arguments: list[str]) -> Attempt:
        """A process that runs."""
        self._orders.write(json.dumps({"folder": str(folder), "arguments": arguments}) + "\n")
        self._orders.flush()
        return Attempt(int(self._replies.readline()), self._replies)


class Attempt:
    """A process that runs until it has ended."""

    def __init__(self, process: int, replies: IO[str]):
        self._process = process
        self._ended = threading.Event()
        threading.Thread(target=self._wait, args=(replies,), daemon=True).start()

    def _wait(self, replies: IO[str]) -> None:
        replies.readline()
        self._ended.set()

    def ended(self, within: float) -> bool:
        """Wait for its end."""
        return self._ended.wait(within)

    def peak_memory(self) -> float:
        """MB at most until now; 0 if it has ended."""
        try:
            lines = Path(f"/proc/{self._process}/status").read_text().splitlines()
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), 0.0)

    def send(self, what: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if not self._ended.is_set():
            os.kill(self._process, what)


@contextmanager
def forks() -> Iterator[Forks]:
    """A process that forks others, until the block ends."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.child"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path, "HELM_LONGCTX_WAIT": "0.01"},
    )  # fmt: skip
    with process:
        yield Forks(process)


class Chaos:
    """Makes rounds, one after the other."""

    def __init__(self, forks: Forks, server: RestartableServer, folder: Path):
        self.forks, self.server, self._folder = forks, server, folder
        self._undisturbed: dict[str, dict[str, Any]] = {}
        self.tally = Tally()

    def round(self, seed: int) -> None:
        """Disturb one run, then complete it.

        Raises:
            ChaosError: its results differ, or something was asked again.
        """
        rng = random.Random(seed)
        entry = rng.choice(ENTRIES)
        expected = self._results_undisturbed(entry)
        run = Run(self.forks, self.server, self._folder / str(seed), entry, rng, self.tally)
        for _ in range(rng.randint(1, 4)):
            if not run.is_complete:
                run.attempt_disturbed()
        for _ in range(CALM):
            if not run.is_complete:
                run.attempt_calmly()
        if not run.is_complete:
            raise ChaosError(f"not complete after {CALM} attempts without faults")
        for name, value in run.results().items():
            if value != expected[name]:
                raise ChaosError(f"{name} differ from an undisturbed run's")
        self.tally.rounds += 1

    def _results_undisturbed(self, entry: str) -> dict[str, Any]:
        if entry not in self._undisturbed:
            folder = self._folder / f"undisturbed{len(self._undisturbed)}"
            run = Run(self.forks, self.server, folder, entry, random.Random(0), Tally())
            run.attempt_calmly()
            self._undisturbed[entry] = run.results()
        return self._undisturbed[entry]


class Run:
    """One run, attempted until it is complete.

    Attributes:
        journaled: tags of the answers that stood in the journal when the last attempt had ended.
    """

    def __init__(
        self, forks: Forks, server: RestartableServer, folder: Path, entry: str, rng: random.Random, tally: Tally
    ):
        self._forks, self._server, self._rng, self._tally = forks, server, rng, tally
        self._folder, self.journaled = folder, set[str]()
        _write_deployment(folder, server.openai)
        server.forget()
        cache = [] if rng.random() < 0.5 else ["--disable-cache"]
        self._arguments = ["--run-entries", f"{entry},model=chaos/model", "--suite", "s", "-m", "999", *cache]
        self._arguments += ["--local-path", str(folder), "--num-threads", str(rng.randint(1, 4))]
        self._arguments += ["--runner-class-name", "helm_longctx.running.LongContextRunner"]

    @property
    def _path(self) -> Path | None:
        return next(self._folder.glob("benchmark_output/runs/s/helmet*"), None)

    @property
    def is_complete(self) -> bool:
        """Whether all files are there and no answer is missing."""
        path = self._path
        return path is not None and (path / "per_instance_stats.json").exists() and not (path / NAME).exists()

    def attempt_disturbed(self) -> None:
        """Start the command while the server fails, and maybe restart the one and kill the other."""
        rng = self._rng
        kinds = rng.sample(KINDS, rng.randint(1, 4))
        self._server.plan = faults.share(rng.choice([0.05, 0.2, 0.5]), kinds, seed=rng.randrange(2**32))
        self._server.model.slow = rng.choice([0.0, 0.1])
        attempt = self._start()
        if rng.random() < 0.3:
            self._await_moment(attempt)
            self._server.restart(rng.uniform(0, 0.3))
            self._tally.restarts += 1
        if rng.random() < 0.8:
            self._await_moment(attempt)
            self._end(attempt, rng.choice(SIGNALS))
        self._wait(attempt)
        self._tally.faults.update(fault.name for fault in self._server.failed().elements())
        self._tear()
        self._check()

    def attempt_calmly(self) -> None:
        """Start the command without faults; it ends by itself."""
        self._server.plan, self._server.model.slow = faults.none, 0.0
        self._wait(self._start())
        self._check()

    def _start(self) -> Attempt:
        self._server.forget()
        self._tally.attempts += 1
        return self._forks.start(self._folder, self._arguments)

    def _await_moment(self, attempt: Attempt) -> None:
        """Any moment: while it starts, after a number of requests, while the results are written."""
        until, due = time.monotonic() + self._rng.uniform(0, 4), self._rng.randint(0, 30)
        while len(self._server.calls) < due and time.monotonic() < until and not attempt.ended(0.002):
            pass
        attempt.ended(self._rng.uniform(0, 0.1))

    def _end(self, attempt: Attempt, what: signal.Signals) -> None:
        start = time.monotonic()
        attempt.send(what)
        self._tally.signals[what.name] += 1
        if not attempt.ended(PATIENCE):
            attempt.send(signal.SIGKILL)
            raise ChaosError(f"{what.name} did not end it within {PATIENCE:.0f} s")
        self._tally.slowest_end = max(self._tally.slowest_end, time.monotonic() - start)

    def _wait(self, attempt: Attempt) -> None:
        if not attempt.ended(PATIENCE):
            attempt.send(signal.SIGKILL)
            raise ChaosError(f"it did not end within {PATIENCE:.0f} s")

    def _tear(self) -> None:
        """Now and then the journal's end is lost, or half a line stands there: as after a crash of the machine."""
        journal = self._path / NAME if self._path else None
        if journal is None or not journal.exists() or self._rng.random() < 0.5:
            return
        self._tally.torn += 1
        if self._rng.random() < 0.5:
            size = journal.stat().st_size
            os.truncate(journal, max(0, size - self._rng.randint(1, 400)))
        else:
            with journal.open("ab") as file:
                file.write(b'["0123456789abcdef", {"success": tr')

    def _check(self) -> None:
        """Nothing was asked that stood in the journal when the command was started."""
        asked = {tag(call.prompt) for call in self._server.calls}
        self._tally.requests += len(self._server.calls)
        if again := asked & self.journaled:
            raise ChaosError(f"{len(again)} requests were asked again, though their answers stand in the journal")
        journal = self._path / NAME if self._path else None
        lines = journal.read_bytes().split(b"\n")[:-1] if journal and journal.exists() else []
        self.journaled = tags(b"\n".join(lines))

    def results(self) -> dict[str, Any]:
        """What must not depend on what happened meanwhile."""
        path = self._path
        assert path
        states = json.loads((path / "scenario_state.json").read_bytes())["request_states"]
        stats = json.loads((path / "stats.json").read_bytes())
        each = json.loads((path / "per_instance_stats.json").read_bytes())
        return {
            "statistics": [row for row in stats if row["name"]["name"] not in DELIVERY],
            "statistics of instances": [
                (row["instance_id"], [s for s in row["stats"] if s["name"]["name"] not in DELIVERY]) for row in each
            ],
            "answers": [[answer["text"] for answer in state["result"]["completions"]] for state in states],
            "prompts": {state["instance"]["id"]: full_prompt(path, state["instance"]["id"]) for state in states},
        }


DELIVERY = ("request_seconds", "request_cached")
"""Statistics of how answers came: not of what they are."""


def _write_deployment(folder: Path, address: str) -> None:
    write_judges(folder, {"chaos/model": address})
    path = folder / "model_deployments.yaml"
    content = yaml.safe_load(path.read_text())
    content["model_deployments"][0]["client_spec"]["args"]["timeout"] = TIMEOUT
    path.write_text(yaml.safe_dump(content))


@contextmanager
def chaos(folder: Path) -> Iterator[Chaos]:
    """A server and a process that forks, until the block ends."""
    with forks() as started, serve() as server:
        yield Chaos(started, server, folder)


def main() -> None:
    """Make rounds for `CHAOS_SECONDS`; the first has the seed `CHAOS_SEED`, the next the one after it."""
    seconds = float(os.environ.get("CHAOS_SECONDS") or 600)
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    folder = Path(tempfile.mkdtemp(prefix="chaos"))
    end = time.monotonic() + seconds
    with chaos(folder) as made:
        while time.monotonic() < end:
            print(f"CHAOS_SEED={seed}", flush=True)
            try:
                made.round(seed)
            except ChaosError as error:
                sys.exit(f"CHAOS_SEED={seed}: {error}; log and files: {folder / str(seed)}")
            seed += 1
        print(made.tally)


if __name__ == "__main__":
    main()
