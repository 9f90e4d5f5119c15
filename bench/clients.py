"""How many requests per second our client sends with 64 threads, beside a bare asyncio client of the official package.

    python bench/clients.py [--turns 3] [--waves 4] [--json FILE]

A server in a process of its own answers each request after one second. Both clients send the same prompts, take turns,
and have a first turn that does not count. Ours goes the way of a run: our runner's sender, HELM's client interface, the
request cache in SQLite, and the journal, which is on disk after each answer. Printed are medians over the turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import openai
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
from helm.benchmark.model_metadata_registry import ModelMetadata, register_model_metadata
from helm.common.local_context import LocalContext
from helm.common.request import Request

from helm_longctx.running.cache import digest_cache
from helm_longctx.running.sending import Sender
from helm_longctx.runs.journal import Journal

THREADS = 64
SECONDS = 1.0
"""That the server takes to answer."""

SIZES = {"2k": 8_600, "128k": 550_000}
"""Characters of a prompt."""

DEPLOYMENT = "bench/server"
REPLY = json.dumps(
    {
        **{"id": "1", "object": "chat.completion", "created": 1, "model": "m"},
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
).encode()
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n\r\n".encode()


class Answering(asyncio.Protocol):
    """Reads requests without looking at them, and answers each after a second."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._head, self._left = transport, b"", 0

    def data_received(self, data: bytes) -> None:
        if not self._left:
            head, end, body = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                self._head = head
                return
            self._head, lines = b"", head.lower().split(b"\r\n")
            self._left = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            data = body
        self._left -= len(data)
        if not self._left:
            asyncio.get_running_loop().call_later(SECONDS, self._transport.write, HEAD + REPLY)


def serve(connection: Connection) -> None:
    """Serve until the process is ended, and tell the port."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def bare(address: str, prompts: list[str]) -> float:
    """Seconds of the official asyncio client."""

    async def run() -> float:
        client = openai.AsyncOpenAI(base_url=address, api_key="sk-none", max_retries=0)
        free = asyncio.Semaphore(THREADS)

        async def ask(prompt: str) -> None:
            async with free:
                messages: Any = [{"role": "user", "content": prompt}]
                await client.chat.completions.create(model="m", messages=messages, max_tokens=50, temperature=0)

        start = time.perf_counter()
        await asyncio.gather(*map(ask, prompts))
        return time.perf_counter() - start

    return asyncio.run(run())


def ours(folder: Path, prompts: list[str]) -> float:
    """Seconds of ours, with an empty cache and journal."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    sender = Sender(LocalContext(str(folder), digest_cache(str(folder))), DEPLOYMENT)
    with Journal(folder) as journal:

        def ask(prompt: str) -> None:
            request = Request(DEPLOYMENT, "bench/m", prompt=prompt, max_tokens=50, temperature=0)
            attempt = sender(request)
            assert attempt.result.success, attempt.result.error
            journal.add(journal.name(request, prompt[-40:]), attempt.result)
            attempt.keep_replies()

        start = time.perf_counter()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(ask, prompts))
        return time.perf_counter() - start


def measure(address: str, folder: Path, turns: int, waves: int) -> list[dict[str, Any]]:
    """Requests per second of both clients, for each size."""
    rows = []
    for size, characters in SIZES.items():
        ways: dict[str, Callable[[list[str]], float]] = {
            "bare": lambda prompts: bare(address, prompts),
            "ours": lambda prompts: ours(folder, prompts),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(turns + 1):
            for name, way in ways.items():
                prompts = [f"{random.getrandbits(64):x} {'word ' * (characters // 5)}" for _ in range(THREADS * waves)]
                seconds = way(prompts)
                if turn:
                    rates[name].append(len(prompts) / seconds)
        medians = {name: statistics.median(each) for name, each in rates.items()}
        rows.append({"size": size, **medians, "ratio": medians["ours"] / medians["bare"], "rates": rates})
    return rows


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--waves", type=int, default=4, help="requests of each thread in a turn")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging.disable()
    theirs, connection = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(connection,), daemon=True)
    process.start()
    address = f"http://127.0.0.1:{theirs.recv()}/v1/"
    register_model_metadata(ModelMetadata("bench/m", "bench", "bench", "", "open", None, []))
    spec = ClientSpec("helm_longctx.apis.OpenAIClient", {"base_url": address})
    register_model_deployment(ModelDeployment(DEPLOYMENT, spec, "bench/m"))
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(address, Path(folder), args.turns, args.waves)
    process.terminate()
    for row in rows:
        print(f"{row['size']:>5}: {row['ours']:6.1f} requests/s, bare {row['bare']:6.1f}, ratio {row['ratio']:.2f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
