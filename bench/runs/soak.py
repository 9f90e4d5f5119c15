"""Sends many small requests, of which about one in ten fails, with our runner's loop, request cache and journal.

    python -m bench.runs.soak [--runs 20] [--requests 5000] [--threads 64] [--json FILE]
    python -m bench.runs.soak --load

A server in a separate process answers at once, answers with an error status, drops the connection, or does not answer
until the client gives up. It counts the answers that each prompt got. Each run is then continued from its journal, and
repeated by a run that finds the answers in the request cache. Neither may send a request that was answered. The script
prints the memory in the first and the last tenth of all requests, the failures, and the answers that were paid for
twice.

`--load` instead sends requests without faults, 20,000 of 2k tokens and 200 of 1m tokens, and prints the memory and the
open files in the first and the last tenth of each. Then it summarizes and reports a suite with 100 run entries for each
of ten models, and prints the seconds and the memory of both commands.
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
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

from bench.cost import measure_command
from bench.requests.clients import OURS, REPLY, make_prompt, make_request, response
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    ModelMetadata,
    register_model_metadata,
)
from helm.common.local_context import LocalContext
from tests.support.fabricate_runs import long_prompts, write_run

from helm_longctx.models.results import failure_of
from helm_longctx.run_settings import WAIT, settings_in_use
from helm_longctx.runner.asking import Asking, ask_all
from helm_longctx.runner.cache import digest_cache
from helm_longctx.runner.engine import PendingRequest
from helm_longctx.runner.sending import make_sender
from helm_longctx.runner.spending import Limit, Spending
from helm_longctx.runner.spool import Spool
from helm_longctx.runs.journal import Journal
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.registry import find_benchmark

CHARACTERS = 1_000
"""Of a prompt."""

LOADS = {"2k": (20_000, 8_000), "1m": (200, 4_000_000)}
"""Requests, and characters of a prompt, by the prompt's length in tokens."""

LARGEST_RUN = 2_000
"""Requests of a run. A run holds its answers in memory until it ends, about 2 kB each."""

SAMPLES = 100
"""Readings of memory and open files while a load is sent, at most."""

MODELS = 10
ENTRIES = 100
INSTANCES = 10
"""Of the suite that is summarized and reported: models, run entries of each, and instances of a run."""

WARM_UP = 2
"""Runs that do not count: until then caches and the pools of the memory allocator fill."""

TIMEOUT = 5.0
LOAD_TIMEOUT = 120.0
"""Seconds after which the client gives up: on a request that the server does not answer, and under load."""

MOST_GROWTH = 0.05
"""Largest growth of memory and of open files from the first to the last tenth."""

FAULTS = {
    "status 500": 0.03,
    "status 429": 0.02,
    "status 503": 0.01,
    "dropped": 0.035,
    "silent": 0.005,
}
"""Shares of the requests that fail."""

_LONGEST_HEAD = 10_000
"""Bytes in which a request's head ends, and the prompt's number stands at the start of its body."""

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
    has_faults: ClassVar = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = bytearray()

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n", 0, _LONGEST_HEAD)
        length = (
            re.search(rb"(?i)content-length: (\d+)", self._data[:end])
            if end >= 0
            else None
        )
        if length and len(self._data) == end + 4 + int(length[1]):
            body = self._data[end + 4 : end + 4 + _LONGEST_HEAD]
            self._data = bytearray()
            self._reply(body)

    def _reply(self, body: bytearray) -> None:
        share = sum(FAULTS.values()) if self.has_faults else 0.0
        (fault,) = self.rng.choices(
            [*FAULTS, ""],
            [*FAULTS.values(), 1 - share] if share else [0.0] * len(FAULTS) + [1.0],
        )
        if not fault:
            self.answers[bytes(_NUMBER.findall(body)[0])] += 1
            self._transport.write(response(REPLY))
            return
        self.faults[fault] += 1
        if fault == "dropped":
            self._transport.close()
        elif fault.startswith("status"):
            self._transport.write(
                b"HTTP/1.1 %s Error\r\nContent-Length: 2\r\n\r\n{}"
                % fault.split()[1].encode()
            )


def serve(connection: Connection, has_faults: bool) -> None:
    """Send the port through the pipe, and the counts for each message, until the process is ended."""
    Faulty.has_faults = has_faults

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Faulty, "127.0.0.1", 0, backlog=1024)
        loop.add_reader(connection.fileno(), tell)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    def tell() -> None:
        connection.recv()
        twice = sum(number > 1 for number in Faulty.answers.values())
        connection.send(
            {
                "answered": len(Faulty.answers),
                "paid_twice": twice,
                "faults": dict(Faulty.faults),
            }
        )

    asyncio.run(run())


@contextmanager
def local_server(has_faults: bool = True) -> Iterator[tuple[str, Connection]]:
    """Yield the server's address, and the end of a pipe that answers each message with the counts."""
    theirs, connection = multiprocessing.Pipe()
    process = multiprocessing.Process(
        target=serve, args=(connection, has_faults), daemon=True
    )
    process.start()
    yield f"http://127.0.0.1:{theirs.recv()}/v1/", theirs
    process.terminate()


def resident_mb() -> float:
    """Return the MB of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Sampling(Asking):
    """Records the memory and the open files after every so many requests.

    Attributes:
        ramp: requests at the start of a run that do not count, because not all threads have a connection yet.
    """

    samples: ClassVar[list[float]] = []
    files: ClassVar[list[int]] = []
    every: ClassVar = 100
    ramp: ClassVar = 0
    _number = 0

    def count(self, *arguments: Any) -> Any:
        """Count an outcome."""
        self._number += 1
        if self._number > self.ramp and self._number % self.every == 0:
            self.samples.append(resident_mb())
            self.files.append(len(os.listdir("/proc/self/fd")))
        return super().count(*arguments)


def make_run(
    folder: Path,
    prompts: Iterable[str],
    context: LocalContext,
    threads: int,
    kind: type[Asking],
) -> int:
    """Make a run, and return the number of failed requests."""
    folder.mkdir(exist_ok=True)
    with Spool(folder) as spool, Journal(folder) as journal:
        pending = [
            PendingRequest(make_request(number, prompt, spool))
            for number, prompt in enumerate(prompts)
        ]
        spending = Spending(OURS, Limit(None))
        asking = kind(
            make_sender(context, OURS, settings_in_use()),
            journal,
            spending,
            len(pending),
        )
        states = ask_all(pending, asking, threads)
    return sum(
        state.result is None or failure_of(state.result) is not None for state in states
    )


def soak(
    folder: Path, runs: int, requests: int, threads: int, counts: Connection
) -> dict[str, Any]:
    """Make all runs, and return the figures."""
    context = LocalContext(str(folder), digest_cache(str(folder)))
    failed = 0
    start = time.monotonic()
    for run in range(-WARM_UP, runs):
        prompts = [
            make_prompt((run + WARM_UP) * requests + number, CHARACTERS)
            for number in range(requests)
        ]
        kind_of_first = Sampling if run >= 0 else Asking
        for path, kind in (("run", kind_of_first), ("run", Asking), ("again", Asking)):
            failures = make_run(
                folder / f"{path}{run}", prompts, context, threads, kind
            )
            failed += failures if kind is Sampling else 0
        print(
            f"{(run + 1) * requests} requests, {time.monotonic() - start:.0f} s, {resident_mb():.0f} MB",
            flush=True,
        )
    counts.send(None)
    tenth = max(1, len(Sampling.samples) // 10)
    first = statistics.fmean(Sampling.samples[:tenth])
    last = statistics.fmean(Sampling.samples[-tenth:])
    figures = {
        "requests": runs * requests,
        "failed": failed,
        **counts.recv(),
        "seconds": time.monotonic() - start,
    }
    return {
        **figures,
        "first_tenth_mb": first,
        "last_tenth_mb": last,
        "growth": last / first - 1,
    }


def send_load(
    folder: Path, threads: int, requests: int, characters: int
) -> dict[str, float]:
    """Send requests of one length after a warm-up, in runs of `LARGEST_RUN`, and return the figures of both ends."""
    context = LocalContext(str(folder), digest_cache(str(folder)))
    start = time.monotonic()
    warm_up = max(2 * threads, requests // 10)
    Sampling.samples.clear()
    Sampling.files.clear()
    # After two requests of each thread, nearly all threads have their connection.
    Sampling.every = max(1, requests // SAMPLES)
    Sampling.ramp = min(2 * threads, requests // 2)
    for first in (-warm_up, *range(0, requests, LARGEST_RUN)):
        numbers = range(first, min(requests, first + LARGEST_RUN) if first >= 0 else 0)
        prompts = (make_prompt(number + warm_up, characters) for number in numbers)
        kind = Sampling if first >= 0 else Asking
        if failed := make_run(folder / f"run{first}", prompts, context, threads, kind):
            sys.exit(f"{failed} of {len(numbers)} requests failed")
    figures = {"requests": float(requests), "seconds": time.monotonic() - start}
    for what, values in (("mb", Sampling.samples), ("files", Sampling.files)):
        figures[f"first_tenth_{what}"], figures[f"last_tenth_{what}"] = _ends(values)
    return figures


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the means of the first and the last tenth."""
    tenth = max(1, len(values) // 10)
    return statistics.fmean(values[:tenth]), statistics.fmean(values[-tenth:])


def write_suite(suite: Path) -> int:
    """Write runs of the first entries of HELMET and LV-Eval, and return their number."""
    entries = [
        f"{name}:{benchmark.task_argument}={task.argument},length={length_label(length)}"
        for benchmark in map(find_benchmark, ("helmet", "lv_eval"))
        for name, category in benchmark.entries.items()
        for task in category.tasks
        for length in sorted(task.sizes)
    ]
    for number, entry in enumerate(entries[:ENTRIES]):
        first = write_run(
            suite, f"{entry},model=longctx/null", long_prompts(INSTANCES, 2_000)
        )
        for model in range(1, MODELS):
            copy = suite / first.name.replace("longctx_null", f"bench_m{model}")
            shutil.copytree(first, copy)
            for path in copy.glob("*.json"):
                text = path.read_text().replace("longctx/null", f"bench/m{model}")
                path.write_text(text.replace("longctx_null", f"bench_m{model}"))
        print(f"{(number + 1) * MODELS} runs", end="\r", flush=True)
    return min(ENTRIES, len(entries)) * MODELS


def load(threads: int) -> dict[str, Any]:
    """Send requests of both lengths, summarize and report a suite, and return all figures."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for length, (requests, characters) in LOADS.items():
            (Path(name) / length).mkdir()
            figures[length] = send_load(
                Path(name) / length, threads, requests, characters
            )
            print(length, json.dumps(figures[length]), flush=True)
        figures["runs"] = write_suite(Path(name) / "benchmark_output/runs/s")
        program = Path(sys.executable).parent / "helm-longctx"
        for command in ("summarize", "report"):
            figures[command] = asdict(
                measure_command([program, command, "--suite", "s"], Path(name))
            )
            print(command, json.dumps(figures[command]), flush=True)
    return figures


def main() -> None:
    """Print the figures. The exit status is 1 if something was paid twice, or memory or open files grew by over 5 %."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--requests", type=int, default=5_000, help="of each run")
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument(
        "--load",
        action="store_true",
        help="send 20,000 short and 200 long requests, without faults",
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    os.environ.setdefault(WAIT, "0.01")
    with (
        local_server(not args.load) as (address, counts),
        tempfile.TemporaryDirectory() as folder,
    ):
        register_model_metadata(
            ModelMetadata("bench/m", "bench", "bench", "", "open", None, [])
        )
        timeout = TIMEOUT if not args.load else LOAD_TIMEOUT
        arguments = {"base_url": address, "api_key": "sk-none", "timeout": timeout}
        spec = ClientSpec("helm_longctx.models.apis.OpenAIClient", arguments)
        register_model_deployment(ModelDeployment(OURS, spec, "bench/m"))
        numbers = args.runs, args.requests, args.threads
        figures = (
            load(args.threads) if args.load else soak(Path(folder), *numbers, counts)
        )
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(_has_grown(figures))


def _has_grown(figures: dict[str, Any]) -> bool:
    if "growth" in figures:
        return bool(figures["paid_twice"] > 0 or figures["growth"] > MOST_GROWTH)
    pairs = [
        (figures[length][f"first_tenth_{what}"], figures[length][f"last_tenth_{what}"])
        for length in LOADS
        for what in ("mb", "files")
    ]
    return any(last > first * (1 + MOST_GROWTH) for first, last in pairs)


if __name__ == "__main__":
    main()
