"""Kills runs of methods at random requests, continues them, and says which requests were sent again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.commands import write_ready
from tests.runner import making
from tests.runner.scripted_runs import BASE, METHODS, answers
from tests.support import scripted
from tests.support.processes import THREADS, start
from tests.support.servers.llm import serve
from tests.support.servers.tools import Turn, serve_tools

KILLED = {**METHODS, "recursive": "recursive", "agent": "agent"}
DELAY = 0.02
"""Seconds that an answer takes."""


@dataclass
class Requests:
    """The requests that a server has answered, and when there were enough of them."""

    names: list[object] = field(default_factory=list)
    due: int = 0
    enough: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: object) -> None:
        """Count a request, which is answered a moment later."""
        with self.lock:
            self.names.append(name)
            if len(self.names) >= self.due:
                self.enough.set()
        time.sleep(DELAY)

    def wait(self, more: int) -> None:
        """Wait until more requests have arrived; at most a minute."""
        with self.lock:
            self.due = len(self.names) + more
            self.enough.clear()
        self.enough.wait(60)


@contextmanager
def serving(name: str, requests: Requests) -> Iterator[str]:
    """Serve the scripted model of a method, and yield the address of its API."""

    def answer(prompt: str) -> str:
        requests.add(prompt)
        return (
            scripted.coder(prompt) if name == "recursive" else scripted.answer(prompt)
        )

    def read(task: str, results: Sequence[str]) -> Turn:
        requests.add((task, *results))
        return scripted.reader(task, results)

    if name == "agent":
        with serve_tools(read) as (address, _):
            yield f"{address}/v1/"
    else:
        with serve(answer) as server:
            yield server.openai


@dataclass(frozen=True)
class Outcome:
    """What came of kills.

    Args:
        requests: number of requests of a run that is not killed.
        sent: number of different requests of the killed one.
        again: how often a request was sent again that was among the last ones before a kill, and so in flight.
        answered: how often another one was sent again.
        equal: whether the answers are those of the run that was not killed.
    """

    requests: int
    sent: int
    again: int
    answered: int
    equal: bool


def count_again(names: Sequence[object], marks: Sequence[int]) -> tuple[int, int]:
    """Return how often requests were sent again that were in flight at a kill, and that were not.

    Args:
        names: the requests in the order in which they came.
        marks: how many there were at each kill.
    """
    again = 0
    answered = 0
    last = dict[object, int]()
    for position, name in enumerate(names):
        if name in last:
            mark = next((mark for mark in marks if mark > last[name]), 0)
            is_in_flight = last[name] >= mark - 2 * THREADS and mark <= position
            again = again + is_in_flight
            answered = answered + (not is_in_flight)
        last[name] = position
    return again, answered


def kill(folder: Path, name: str, kills: int, rng: random.Random) -> Outcome:
    """Kill the runs of a method at random requests, and complete them."""
    entry = f"{BASE}{KILLED[name]},model=vllm/llama-3.1-8b-instruct"
    whole = folder / "whole"
    killed = folder / "killed"
    requests = Requests()
    with serving(name, requests) as address:
        for run_folder in (whole, killed):
            write_ready(run_folder, address)
        assert start(whole, ["--disable-cache"], entry=entry).wait(300) == 0, (
            whole / "log"
        ).read_text()[-3000:]
        expected = len(requests.names)
        requests.names = []
        marks = list[int]()
        for _ in range(kills):
            process = start(killed, ["--disable-cache"], entry=entry)
            requests.wait(rng.randint(1, max(1, expected // kills)))
            time.sleep(rng.random() * DELAY * 2)
            process.kill()
            process.wait()
            marks.append(len(requests.names))
        assert start(killed, ["--disable-cache"], entry=entry).wait(300) == 0, (
            killed / "log"
        ).read_text()[-3000:]
    again, answered = count_again(requests.names, marks)
    return Outcome(
        expected,
        len({*requests.names}),
        again,
        answered,
        _answers(whole) == _answers(killed),
    )


def _answers(folder: Path) -> list[str]:
    (run,) = folder.glob("benchmark_output/runs/s/helmet*")
    assert making.means(run)
    return answers(run)
