"""Rounds of runs through a batch API whose commands are killed at given moments. `bench/runs/batches.py` has the full size.

Two things must hold at the end: each request was paid for once in a batch, and the results are those of the direct way.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from helm_longctx.models.baselines import lexical
from helm_longctx.runner.batches.submission import PROBE
from helm_longctx.runs.journal import NAME as JOURNAL
from helm_longctx.tasks.metric_names import MEASURED
from tests.chaos.chaos import Chaos, ChaosError
from tests.chaos.processes import Attempt, start
from tests.judging.deployments import write_judges
from tests.support.servers.batches import BatchServer, serve_batches

PATIENCE = 500.0
"""Seconds in which a command must end."""

SUITE = ["--suite", "s"]


@dataclass(frozen=True)
class Moment:
    """A moment at which a command is killed.

    Args:
        command: `send` or `collect`.
        step: a step of the server, with `+` if it is done and not yet answered; `journal` when answers are written;
            `prompts` while the requests are made.
    """

    command: str
    step: str


def moments(protocol: str) -> list[Moment]:
    """Return ten moments: around each step that costs money, and between these steps."""
    create = f"create_{protocol}"
    results = "content" if protocol == "openai" else "results"
    upload = ["upload", "upload+"] if protocol == "openai" else [create, create]
    sends = ["prompts", *upload, create, f"{create}+", f"{create}+", create]
    collects = [f"retrieve_{protocol}", f"{results}+", "journal"]
    return [Moment("send", step) for step in sends] + [
        Moment("collect", step) for step in collects
    ]


@dataclass
class Tally:
    """A record of what happened.

    Attributes:
        kills: the moments at which a command was killed.
        seconds, peak: duration and memory in MB of each command that was not killed.
    """

    kills: list[Moment] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)


class BatchRun:
    """A run in a folder of its own.

    Args:
        protocol: `openai` or `anthropic`.
        entry: a run entry without a model.
        batch_size: the largest number of requests in a batch.
    """

    def __init__(
        self,
        server: BatchServer,
        folder: Path,
        protocol: str,
        entry: str,
        batch_size: int,
    ):
        self._server = server
        self._folder = folder
        self._protocol = protocol
        self._entry = f"{entry},model=chaos/model"
        self._batch_size = batch_size
        self.tally = Tally()
        write_deployment(folder, server, protocol)

    @property
    def run(self) -> Path | None:
        """Return the run's folder."""
        return next(self._folder.glob("benchmark_output/runs/s/*=*"), None)

    def kill_at(self, when: Sequence[Moment]) -> None:
        """Start a command for each moment, and kill it then.

        Raises:
            ChaosError: a command ended before its moment.
        """
        for number, moment in enumerate(when):
            if moment.command == "collect" and when[number - 1].command == "send":
                self.send()
            attempt = self._start(moment.command)
            self._kill(attempt, moment)
            self.tally.kills.append(moment)

    def send(self) -> None:
        """Send the requests that are left, and end."""
        self._finish("send", self._start("send"))

    def collect(self) -> None:
        """Wait for the answers of all batches, and make the run."""
        self._finish("collect", self._start("collect"))

    def make(self) -> None:
        """Ask for all answers directly with `helm-run`, without a cache."""
        arguments = [
            "helm-run",
            "--run-entries",
            self._entry,
            *SUITE,
            "-m",
            "9999",
            "--local-path",
            ".",
        ]
        arguments += [
            "--disable-cache",
            "--runner-class-name",
            "helm_longctx.runner.LongContextRunner",
        ]
        self._finish("direct", start(self._folder, arguments))

    def check(self) -> None:
        """Check that each request was paid for once, and that none was sent directly.

        Raises:
            ChaosError: a request was paid for more than once, or was sent directly.
        """
        counts = set(self._server.paid.values())
        if counts != {1}:
            raise ChaosError(f"requests were paid for {sorted(counts)} times")
        if calls := [call for call in self._server.calls if call.prompt != PROBE]:
            raise ChaosError(f"{len(calls)} requests were sent directly")

    def results(self) -> Any:
        """Return the answers and the statistics, without the statistics of requests."""
        assert self.run
        states = json.loads((self.run / "scenario_state.json").read_bytes())[
            "request_states"
        ]
        rows = json.loads((self.run / "stats.json").read_bytes())
        delivery = (
            *MEASURED,
            "request_cached",
            "cached_tokens",
            "cached_share",
            "cache_write_tokens",
            "dollars",
        )
        texts = [
            [answer["text"] for answer in state["result"]["completions"]]
            for state in states
        ]
        return texts, [row for row in rows if row["name"]["name"] not in delivery]

    def _start(self, command: str) -> Attempt:
        arguments = ["helm-longctx", "run", "--entry", self._entry, "-m", "9999"]
        arguments += [*SUITE, "--local-path", "."]
        arguments += ["--batch", {"send": "send", "collect": "wait"}[command]]
        arguments += ["--batch-size", str(self._batch_size)]
        return start(self._folder, arguments)

    def _kill(self, attempt: Attempt, moment: Moment) -> None:
        def kill(step: str) -> None:
            if step == moment.step:
                self._server.moment = lambda step: None
                attempt.send(signal.SIGKILL)
                raise ConnectionError

        self._server.moment = kill
        if moment.step in _WITHIN:
            self._await(attempt, moment)
            attempt.send(signal.SIGKILL)
        if not attempt.ended_by_itself(PATIENCE):
            attempt.send(signal.SIGKILL)
            raise ChaosError(f"{moment} did not come")
        if self._server.moment is kill and moment.step not in _WITHIN:
            raise ChaosError(
                f"{moment} did not come before the command ended: {self._log()}"
            )
        self._server.moment = lambda step: None

    def _await(self, attempt: Attempt, moment: Moment) -> None:
        """Wait until a file of the run exists and grows."""
        while not attempt.ended(0.001):
            path = self.run and self.run / _WITHIN[moment.step]
            if (
                path
                and path.exists()
                and (path.stat().st_size > 2000 or moment.step == "prompts")
            ):
                return
        raise ChaosError(
            f"{moment} did not come before the command ended: {self._log()}"
        )

    def _finish(self, name: str, attempt: Attempt) -> None:
        start = time.monotonic()
        peak = 0.0
        while not attempt.ended(0.02) and time.monotonic() - start < PATIENCE:
            peak = max(peak, attempt.peak_memory())
        self.tally.seconds[name], self.tally.peak[name] = time.monotonic() - start, peak

    def _log(self) -> str:
        return (self._folder / "log").read_text()[-2000:]


_WITHIN = {"prompts": JOURNAL, "journal": JOURNAL}
"""The file by which a moment within a process is known: the journal is opened before the requests are made."""


def write_deployment(folder: Path, server: BatchServer, protocol: str) -> None:
    """Write the deployment `chaos/model`, with our client of a protocol."""
    client = {"openai": "OpenAIClient", "anthropic": "AnthropicClient"}[protocol]
    address = server.openai if protocol == "openai" else server.address
    write_judges(folder, {"chaos/model": address})
    path = folder / "model_deployments.yaml"
    content = yaml.safe_load(path.read_text())
    spec = {
        "class_name": f"helm_longctx.models.apis.{client}",
        "args": {"base_url": address, "model": "m"},
    }
    content["model_deployments"][0]["client_spec"] = spec
    path.write_text(yaml.safe_dump(content))


def disturb(
    server: BatchServer,
    folder: Path,
    protocol: str,
    entry: str,
    batch_size: int,
    when: Sequence[Moment],
) -> tuple[Tally, Tally]:
    """Make a run by batches under kills and another one directly, and return what happened in both.

    Raises:
        ChaosError: something that must hold does not.
    """
    run = BatchRun(server, folder / "batches", protocol, entry, batch_size)
    run.kill_at(when)
    run.send()
    run.collect()
    run.check()
    direct = BatchRun(server, folder / "direct", protocol, entry, batch_size)
    direct.make()
    if run.results() != direct.results():
        raise ChaosError("the results differ from those of the direct way")
    return run.tally, direct.tally


ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=12,style=chat"


def kill_sending(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Kill `run --batch` around a step of sending that costs money, and run the command again."""
    _kill(chaos, rng, folder, ["send"])


def kill_collecting(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Kill `run --batch` while it sends and then while it collects, and run it again."""
    _kill(chaos, rng, folder, ["send", "collect"])


def _kill(
    chaos: Chaos, rng: random.Random, folder: Path, commands: Sequence[str]
) -> None:
    protocol = rng.choice(("openai", "anthropic"))
    known = moments(protocol)
    when = [
        rng.choice([moment for moment in known if moment.command == command])
        for command in commands
    ]
    with serve_batches(lexical.answer) as server:
        server.polls = rng.randint(0, 2)
        tally, _ = disturb(
            server, folder, protocol, ENTRY, rng.choice((4, 6, 12)), when
        )
    chaos.tally.events.update(
        f"kills of run --batch: {moment.command}" for moment in tally.kills
    )
    chaos.tally.attempts += len(tally.kills) + len(tally.seconds)
