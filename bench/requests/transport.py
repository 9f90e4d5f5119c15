"""Compares our transport, with its limits and checks, with the HTTP client of the package `openai`.

    python -m bench.requests.transport [--pairs 500] [--sizes 2000 1000000]

Two clients send the same prompts in turn, from one thread, to a server that answers at
once. The script prints medians of the thread's processor time, which depends less on other programs than the time on a
clock.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import time

import openai
from bench.requests.clients import local_server, make_prompt
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request

from helm_longctx.models.apis import OpenAIClient

WARM_UP = 10
"""Pairs that do not count."""


def make_client(address: str, has_our_transport: bool) -> OpenAIClient:
    """Return a client with our transport, or with the one of the package."""
    client = OpenAIClient(BlackHoleCacheConfig(), base_url=address, api_key="sk-none")
    if not has_our_transport:
        client.client = client.client.with_options(
            http_client=openai.DefaultHttpxClient()
        )
    return client


def milliseconds(asked: OpenAIClient, prompt: str) -> float:
    """Return the processor time of a request."""
    request = Request(
        "bench/ours", "bench/m", prompt=prompt, max_tokens=50, temperature=0
    )
    start = time.thread_time()
    result = asked.make_request(request)
    seconds = time.thread_time() - start
    assert result.success, result.error
    return 1000 * seconds


def measure(address: str, characters: int, pairs: int) -> tuple[float, float]:
    """Return the median time of the package's transport, and the median of the differences of the pairs."""
    clients = [
        make_client(address, has_our_transport) for has_our_transport in (False, True)
    ]
    times = []
    for number in range(pairs + WARM_UP):
        taken = [0.0, 0.0]
        for side in random.sample(range(2), 2):
            taken[side] = milliseconds(clients[side], make_prompt(number, characters))
        times.append(taken)
    times = times[WARM_UP:]
    return statistics.median(bare for bare, _ in times), statistics.median(
        own - bare for bare, own in times
    )


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[2_000, 1_000_000],
        help="characters of a prompt",
    )
    args = parser.parse_args()
    logging.disable()
    with local_server() as address:
        for size in args.sizes:
            bare, more = measure(f"{address}/0/v1/", size, args.pairs)
            print(
                f"{size:,} characters: {bare:.2f} ms with the package's transport, {more:+.2f} ms with ours",
                flush=True,
            )


if __name__ == "__main__":
    main()
