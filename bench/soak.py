"""Sends many small requests, of which about one in ten fails, with our runner's loop, request cache and journal.

    python bench/soak.py [--runs 20] [--requests 5000] [--threads 64] [--json FILE]

A server in a separate process answers at once, answers with an error status, drops the connection, or does not answer
until the client gives up. It counts the answers that each prompt got. Each run is then continued from its journal, and
repeated by a run that finds the answers in the request cache. Neither may send a request that was answered. The script
prints the memory in the first and the last tenth of all requests, the failures, and the answers that were paid for
twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

from clients import HEAD, OURS, REPLY, make_prompt, make_state
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.benchmark.model_metadata_registry import ModelMetadata, register_model_metadata
from helm.common.local_context import LocalContext

from helm_longctx.failures import failure_of
from helm_longctx.running.asking import Asking, Turn, ask_all
from helm_longctx.running.cache import digest_cache
from helm_longctx.running.sending import WAIT, Sender
from helm_longctx.running.spending import Limit, Spending
from helm_longctx.running.spool import Spool, prompt_text, whole_request
from helm_longctx.runs.journal import Journal

CHARACTERS = 1_000
"""Of a prompt."""

WARM_UP = 2
"""Runs that do not count: until then caches and the pools of the memory allocator fill."""

TIMEOUT = 5.0
"""Seconds after which the client gives up."""

FAULTS = {"status 500": 0.03, "status 429": 0.02, "status 503": 0.01, "dropped": 0.035, "silent": 0.005}
"""Shares of the requests that fail."""

_NUMBER = re.compile(rb'"content":"(\d+) ')


class Faulty(asyncio.Protocol):
    """Answers a request, or fails.

    Attributes:
        answers: how often each prompt was answered.
        faults: how often each fault was made.
    """

    answers: ClassVar[Counter[bytes]] = Counter()
    faults: ClassVar[Counter[str]] = Counter()
    rng: ClassVar = random.Random(1)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._data = transport, b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if end and len(body) == int(re.findall(rb"(?i)content-length: (\d+)", head)[0]):
            self._data = b""
            self._reply(body)

    def _reply(self, body: bytes) -> None:
        (fault,) = self.rng.choices([*FAULTS, ""], [*FAULTS.values(), 1 - sum(FAULTS.values())])
        if not fault:
            self.answers[_NUMBER.findall(body)[0]] += 1
            self._transport.write(HEAD + REPLY)
            return
        self.faults[fault] += 1
        if fault == "dropped":
            self._transport.close()
        elif fault.startswith("status"):
            self._transport.write(b"HTTP/1.1 %s Error\r\nContent-Length: 2\r\n\r\n{}" % fault.split()[1].encode())


def serve(connection: Connection) -> None:
    """Send the port through the pipe, and the counts for each message, until the process is ended."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Faulty, "127.0.0.1", 0, backlog=1024)
        loop.add_reader(connection.fileno(), tell)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    def tell() -> None:
        connection.recv()
        twice = sum(number > 1 for number in Faulty.answers.values())
        connection.send({"answered": len(Faulty.answers), "paid_twice": twice, "faults": dict(Faulty.faults)})

    asyncio.run(run())


@contextmanager
def local_server() -> Iterator[tuple[str, Connection]]:
    """Yield the server's address, and the end of a pipe that answers each message with the counts."""
    theirs, connection = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(connection,), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{theirs.recv()}/v1/", theirs
    process.terminate()


def resident_mb() -> float:
    """Return the MB of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Sampling(Asking):
    """Records the memory after every hundredth request."""

    samples: ClassVar[list[float]] = []
    _counted = 0

    def count(self, *arguments: Any) -> Any:
        """Count an outcome."""
        Sampling._counted += 1
        if Sampling._counted % 100 == 0:
            self.samples.append(resident_mb())
        return super().count(*arguments)


def make_run(folder: Path, prompts: list[str], context: LocalContext, threads: int, asking_class: type[Asking]) -> int:
    """Make a run, and return the number of failed requests."""
    folder.mkdir(exist_ok=True)
    with Spool(folder) as spool, Journal(folder) as journal:
        turns = [Turn(make_state(number, prompt, spool)) for number, prompt in enumerate(prompts)]
        spending = Spending(OURS, Limit(None), partial(prompt_text, spool=spool))
        asking = asking_class(Sender(context, OURS), partial(whole_request, spool=spool), journal, spending, len(turns))
        states = ask_all(turns, asking, threads)
    return sum(state.result is None or failure_of(state.result) is not None for state in states)


def soak(folder: Path, runs: int, requests: int, threads: int, counts: Connection) -> dict[str, Any]:
    """Make all runs, and return the figures."""
    context = LocalContext(str(folder), digest_cache(str(folder)))
    failed, start = 0, time.monotonic()
    for run in range(-WARM_UP, runs):
        prompts = [make_prompt((run + WARM_UP) * requests + number, CHARACTERS) for number in range(requests)]
        kind_of_first = Sampling if run >= 0 else Asking
        for path, kind in (("run", kind_of_first), ("run", Asking), ("again", Asking)):
            failures = make_run(folder / f"{path}{run}", prompts, context, threads, kind)
            failed += failures if kind is Sampling else 0
        print(f"{(run + 1) * requests} requests, {time.monotonic() - start:.0f} s, {resident_mb():.0f} MB", flush=True)
    counts.send(None)
    tenth = max(1, len(Sampling.samples) // 10)
    first, last = statistics.fmean(Sampling.samples[:tenth]), statistics.fmean(Sampling.samples[-tenth:])
    figures = {"requests": runs * requests, "failed": failed, **counts.recv(), "seconds": time.monotonic() - start}
    return {**figures, "first_tenth_mb": first, "last_tenth_mb": last, "growth": last / first - 1}


def main() -> None:
    """Print the figures. The exit status is 1 if something was paid twice, or memory grew by more than 5 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--requests", type=int, default=5_000, help="of each run")
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    os.environ.setdefault(WAIT, "0.01")
    with local_server() as (address, counts), tempfile.TemporaryDirectory() as folder:
        register_model_metadata(ModelMetadata("bench/m", "bench", "bench", "", "open", None, []))
        arguments = {"base_url": address, "api_key": "sk-none", "timeout": TIMEOUT}
        spec = ClientSpec("helm_longctx.apis.OpenAIClient", arguments)
        register_model_deployment(ModelDeployment(OURS, spec, "bench/m"))
        figures = soak(Path(folder), args.runs, args.requests, args.threads, counts)
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(figures["paid_twice"] > 0 or figures["growth"] > 0.05)


if __name__ == "__main__":
    main()
