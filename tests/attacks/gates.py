"""Kills of `gate` at random moments. The same command goes on: it asks nothing twice, and has the same verdict."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from helm_longctx.models.baselines import lexical
from tests.attacks.servers import write_deployments
from tests.support import programs
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=24,style=chat"
COMMAND = (
    "gate",
    "local/m",
    "local/n",
    f"--entry={ENTRY}",
    "--max-drop",
    "30",
    "-m",
    "24",
    "-n",
    "2",
    "--noise",
    "0",
)
LONGEST = 4.0
"""Seconds within which a command is killed."""


def kill_gates(folder: Path, kills: int, seed: int = 1) -> Iterator[tuple[str, bool]]:
    """Yield for each kill of one command whether it could be continued, and at last whether its end is the right one."""
    generator = random.Random(seed)
    with serve(lexical.answer, models={"m": Model(), "n": Model()}) as server:
        whole = folder / "whole"
        write_deployments(whole, f"{server.address}/v1")
        undisturbed = programs.run("helm-longctx", *COMMAND, folder=whole)
        expected = count_questions(server)
        server.calls.clear()
        killed = folder / "killed"
        write_deployments(killed, f"{server.address}/v1")
        for number in range(kills):
            program = programs.start(
                "helm-longctx", *COMMAND, folder=killed, output=killed / "log"
            )
            time.sleep(generator.uniform(0.2, LONGEST))
            program.send_signal(signal.SIGKILL)
            program.wait(60)
            yield f"kill {number}", program.poll() is not None
        last = programs.run("helm-longctx", *COMMAND, folder=killed)
        yield f"status {last.returncode}: {last.stderr[-300:]}", last.returncode == 0
        yield (
            "the verdict",
            read_verdict(killed) == read_verdict(whole) and not undisturbed.returncode,
        )
        again = count_questions(server) - expected
        # A request that was in flight at a kill is sent again. Two threads ask.
        yield f"asked again: {again.total()}", again.total() <= 2 * kills


def count_questions(server: Server) -> Counter[tuple[str, str]]:
    """Return how often each model was asked each question."""
    return Counter((call.body["model"], call.prompt) for call in server.calls)


def read_verdict(folder: Path) -> object:
    """Return the verdict of the gate in a folder; the folder's name without one, so that no other verdict equals it."""
    path = folder / "benchmark_output/gates/gate/gate.json"
    if not path.is_file():
        return folder.name
    gate = json.loads(path.read_text())
    return gate["exit_status"], [
        (part["part"], part["difference"]) for part in gate["parts"]
    ]
