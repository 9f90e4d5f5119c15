"""Measures the requests per second of a run, of the bare official package and of HELM alone ("stock").

    python -m bench.requests.clients [--turns 2] [--threads 1 8 32 64 256] [--sizes 8k 128k] [--after 0.05 1] [--json FILE]

A server in a separate process answers each request after a fixed time. "Bare" is `openai.OpenAI` in a thread pool.
"Ours" does what a run does, with the spool, our runner's loop, our client, the request cache in SQLite, and the
journal. "Stock" is HELM's executor with its client for OpenAI's protocol and its request cache. All three send the same
prompts with the same number of threads, in turn. The first prompt is sent alone, as in a run, and the time starts with
the answer to it. The first round does not count. The script prints medians over the other rounds.

Client and server share the machine, so compare only the ratios of two clients in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import openai
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    ModelMetadata,
    register_model_metadata,
)
from helm.benchmark.scenarios.scenario import Input, Instance
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.local_context import LocalContext
from helm.common.request import Request

from helm_longctx.run_settings import settings_in_use
from helm_longctx.runner.asking import Asking, ask_all
from helm_longctx.runner.cache import digest_cache
from helm_longctx.runner.engine import PendingRequest
from helm_longctx.runner.sending import make_sender
from helm_longctx.runner.spending import Limit, Spending
from helm_longctx.runner.spool import Spool, StoredRequest, point_to
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.prompts import elide
from helm_longctx.tasks.sample import Sample

THREADS = (1, 8, 32, 64, 256)
SIZES = {"8k": 34_000, "128k": 550_000}
"""Characters of a prompt."""

AFTER = (0.05, 1.0)
"""Seconds that the server takes to answer."""

LONGEST = 600
"""Requests of a turn at most; prompts of 128k tokens take a gigabyte of disk for 2,000."""

OURS = "bench/ours"
STOCK = "bench/stock"
REPLY = json.dumps(
    {
        **{"id": "1", "object": "chat.completion", "created": 1, "model": "m"},
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "fine"},
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
).encode()
MODELS = json.dumps(
    {"object": "list", "data": [{"id": "m", "object": "model"}]}
).encode()


def response(body: bytes) -> bytes:
    """Return an HTTP response."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Answering(asyncio.Protocol):
    """Reads requests without looking at them, and answers each after the milliseconds in its path.

    A request for the list of models is answered at once.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._head = b""
        self._left = 0
        self._seconds = 0.0

    def data_received(self, data: bytes) -> None:
        if not self._left:
            head, end, body = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                self._head = head
                return
            self._head = b""
            lines = head.lower().split(b"\r\n")
            if head.startswith(b"GET"):
                self._transport.write(response(MODELS))
                return
            self._seconds = int(lines[0].split(b"/")[1]) / 1000
            self._left = next(
                int(line[15:]) for line in lines if line.startswith(b"content-length:")
            )
            data = body
        self._left -= len(data)
        if not self._left:
            asyncio.get_running_loop().call_later(
                self._seconds, self._transport.write, response(REPLY)
            )


def serve(connection: Connection) -> None:
    """Send the port through the pipe, and serve until the process is ended."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(
            Answering, "127.0.0.1", 0, backlog=1024
        )
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def local_server() -> Iterator[str]:
    """Yield the address of the server. The first part of a path is the milliseconds after which it answers."""
    theirs, connection = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(connection,), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{theirs.recv()}"
    process.terminate()


def make_prompt(number: int, characters: int) -> str:
    """Return a prompt whose beginning no other prompt has."""
    return f"{number:08d} {'word ' * (characters // 5)}"


def in_threads(ask: Callable[[str], object], prompts: list[str], threads: int) -> float:
    """Return the seconds for all prompts except the first, which is sent before."""
    first, *others = prompts
    ask(first)
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(ask, others))
    return time.perf_counter() - start


def bare(address: str, folder: Path, prompts: list[str], threads: int) -> float:
    """Return the seconds of the official package."""
    with openai.OpenAI(base_url=address, api_key="sk-none", max_retries=0) as client:

        def ask(prompt: str) -> None:
            messages: Any = [{"role": "user", "content": prompt}]
            client.chat.completions.create(
                model="m", messages=messages, max_tokens=50, temperature=0
            )

        return in_threads(ask, prompts, threads)


def stock(address: str, folder: Path, prompts: list[str], threads: int) -> float:
    """Return the seconds of HELM alone, with its client and its cache."""
    context = LocalContext(str(folder), SqliteCacheBackendConfig(str(folder)))

    def ask(prompt: str) -> None:
        result = context.make_request(
            Request(STOCK, "bench/m", prompt=prompt, max_tokens=50, temperature=0)
        )
        assert result.success, result.error

    return in_threads(ask, prompts, threads)


class Timed(Asking):
    """Records when the first answer arrived."""

    start: float | None = None

    def count(self, *arguments: Any) -> Any:
        """Count an outcome."""
        self.start = self.start or time.perf_counter()
        return super().count(*arguments)


def ours(address: str, folder: Path, prompts: list[str], threads: int) -> float:
    """Return the seconds of a run's requests, with an empty cache and journal."""
    sender = make_sender(
        LocalContext(str(folder), digest_cache(str(folder))), OURS, settings_in_use()
    )
    with Spool(folder) as spool, Journal(folder) as journal:
        pending = [
            PendingRequest(make_request(number, prompt, spool))
            for number, prompt in enumerate(prompts)
        ]
        spending = Spending(OURS, Limit(None))
        asking = Timed(sender, journal, spending, len(pending))
        states = ask_all(pending, asking, threads)
        assert asking.start
        seconds = time.perf_counter() - asking.start
    assert all(state.result and state.result.success for state in states)
    return seconds


def make_request(number: int, prompt: str, spool: Spool) -> StoredRequest:
    """Return a request as our runner holds it: with a shortened prompt, and the whole prompt in the spool."""
    sample = Sample(
        "generated",
        50,
        50,
        input_tokens=len(prompt) // 4,
        full_prompt=point_to(prompt, spool),
    )
    short = elide(prompt, [])
    instance = Instance(
        Input(short), [], split="test", id=f"id{number}", extra_data=sample.to_json()
    )
    request = Request(OURS, "bench/m", prompt=short, max_tokens=50, temperature=0)
    return StoredRequest(
        RequestState(instance, None, None, 0, None, request, None, 0, False),
        request,
        sample,
        spool,
    )


WAYS = {"bare": bare, "ours": ours, "stock": stock}


def register(address: str) -> None:
    """Register a deployment with our client and one with HELM's."""
    register_model_metadata(
        ModelMetadata("bench/m", "bench", "bench", "", "open", None, [])
    )
    for name, client in (
        (OURS, "helm_longctx.models.apis.OpenAIClient"),
        (STOCK, "helm.clients.openai_client.OpenAIClient"),
    ):
        spec = ClientSpec(client, {"base_url": address, "api_key": "sk-none"})
        register_model_deployment(ModelDeployment(name, spec, "bench/m"))


def measure(
    address: str, characters: int, seconds: float, threads: int, turns: int
) -> dict[str, float]:
    """Return the requests per second of each client."""
    url = f"{address}/{round(seconds * 1000)}/v1/"
    register(url)
    count = 1 + threads * max(3, min(round(3 / seconds), LONGEST // threads))
    prompts = [make_prompt(number, characters) for number in range(count)]
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(turns + 1):
        for name, way in WAYS.items():
            with tempfile.TemporaryDirectory() as folder:
                taken = way(url, Path(folder), prompts, threads)
            if turn:
                rates[name].append((count - 1) / taken)
    return {name: statistics.median(values) for name, values in rates.items()}


def main() -> None:
    """Print a line for each size, time and number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument(
        "--after", type=float, nargs="+", default=AFTER, help="seconds until an answer"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    rows = []
    with local_server() as address:
        for size in args.sizes:
            for after in args.after:
                for threads in args.threads:
                    rates = measure(address, SIZES[size], after, threads, args.turns)
                    ratio = rates["ours"] / rates["bare"]
                    rows.append(
                        {
                            "size": size,
                            "after": after,
                            "threads": threads,
                            **rates,
                            "ratio": ratio,
                        }
                    )
                    print(
                        f"{size:>5}, {after:g} s, {threads:3} threads: ours {rates['ours']:6.1f} requests/s, bare "
                        f"{rates['bare']:6.1f}, stock {rates['stock']:6.1f}, ours / bare {ratio:.2f}",
                        flush=True,
                    )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
