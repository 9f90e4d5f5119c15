"""Tests of `compaction` that is killed: what was paid for is on disk, and nothing of it is asked again."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from random import Random

import orjson

from helm_longctx.apps.compaction.samples import WRITERS, make_session
from tests.support.agents import AgentServer
from tests.support.json_http import JsonHandler
from tests.support.programs import Program, start

DROP = """
import sys
lines = open(sys.argv[1]).readlines()
open(sys.argv[2], "w").writelines(lines[len(lines) // 2:])
open("runs.txt", "a").write("x")
"""


def keep_no_log(line: str) -> bool:
    """Keep a line of a summary that is not of a tool's log."""
    return not re.match(r"\d\d:\d\d ", line)


class KillingServer(AgentServer):
    """A model that kills the program that asks it, when it gets certain requests.

    Attributes:
        program: the program.
        killed_at: numbers of requests, from 1, that kill it. They are answered by nobody.
        answered: the requests that were answered, without those that find out what the server offers.
    """

    def __init__(self) -> None:
        super().__init__([], keep_no_log)
        self.raws += make_session(0, turns=16, per_kind=2)[1]
        self.program: Program | None = None
        self.killed_at: set[int] = set()
        self.requests = 0
        self.answered: Counter[str] = Counter()

    def handle(self, handler: JsonHandler) -> None:
        """Answer a request, or kill the program in its place."""
        self.requests += 1
        if self.requests in self.killed_at:
            assert self.program
            self.program.kill()
            return
        known = len(self.prompts)
        super().handle(handler)
        for prompt in self.prompts[known:]:
            if self.kind_of(prompt) != "greet":
                self.answered[json.dumps(self.bodies[-1])] += 1


def run(server: KillingServer, url: str, folder: Path) -> int:
    """Run the program once, and return its exit status."""
    words = f"drop={sys.executable} drop.py {{input}} {{output}}"
    server.program = start(
        "helm-longctx",
        "compaction",
        "session.jsonl",
        "--model-url",
        url,
        "--compactor",
        "compact",
        "--compactor",
        words,
        "--rounds",
        "1,2",
        "--parallelism",
        "1",
        "--quiet",
        "--to",
        "out",
        folder=folder,
        output=folder / "output.txt",
    )
    try:
        return server.program.wait(120)
    finally:
        server.program.kill()


def find_results(folder: Path) -> dict[str, object]:
    """Return the results without what differs from run to run: times."""
    content = orjson.loads((folder / "out" / "compaction.json").read_bytes())
    for row in content["recall"]:
        del row["seconds"]
    return {key: content[key] for key in ("recall", "differences", "answers")}


def test_nothing_is_paid_for_twice(tmp_path: Path) -> None:
    """Killed at random requests, the same command asks for no answer again, and ends as if nothing had happened."""
    messages, _ = make_session(0, turns=16, per_kind=2)
    results = []
    kills: list[int] = []
    for name in ("undisturbed", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "drop.py").write_text(DROP)
        write = WRITERS["messages"][1]
        (folder / "session.jsonl").write_bytes(write(messages))
        server = KillingServer()
        server.killed_at = set(kills)
        with server.serve() as url:
            statuses = [run(server, url, folder)]
            while statuses[-1] and len(statuses) < 10:
                statuses.append(run(server, url, folder))
        output = (folder / "output.txt").read_text()
        assert statuses == [-signal.SIGKILL] * len(kills) + [0], output
        assert set(server.answered.values()) == {1}
        results.append((find_results(folder), set(server.answered)))
        # The command compacts the transcript in one part and in two, and each of these only once.
        assert (folder / "runs.txt").read_text() == "xxx"
        kills = Random().sample(range(2, server.requests), 3)
    assert results[0] == results[1]
