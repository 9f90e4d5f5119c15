"""Lets certificates find out simulated servers with known curves, and prints their cost.

python -m bench.defects.certify [--runs 100] [--prompt-runs 5] [--claim 16k]

The first table is about 1m tokens. Scores are drawn from the curves of the servers, without prompts. The second table
is about real prompts of up to --claim tokens, which the simulated servers read in this process. It needs a few seconds
for each run. Both use the search, the tests and the findings of `helm-longctx certify`, the second one also its tasks.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from multiprocessing import Pool
from random import Random
from statistics import fmean

from tests.support.certifying import KINDS, SERVERS, Curve, ask_prompts
from tests.support.endpoints import SimulatedModel

from helm_longctx.apps.certify.procedure import run
from helm_longctx.apps.certify.search import Design
from helm_longctx.tasks.lengths import parse_length

WINDOW = 32 * 1024
"""The length beyond which the servers of the first table forget, cut or lose a part."""


def draw_one(claim: int, server: int, seed: int) -> tuple[bool, int]:
    """Make a certificate from a curve. Return whether it is right, and the tokens that it costs."""
    # The seed chooses the order of the kinds, and users draw it, too.
    design = Design(claim, 4096, KINDS, seed=1000 * seed)
    simulated = SERVERS[server]
    curve = Curve(simulated, WINDOW, Random(f"{simulated.name} {seed}"))
    return simulated.is_found_out(run(design, curve.ask).record(), WINDOW), sum(
        curve.tokens
    )


def read_one(claim: int, server: int, seed: int) -> tuple[bool, int]:
    """Make a certificate with real prompts. Return whether it is right, and the tokens that it costs."""
    window = claim // 4
    tokens = list[int]()
    design = Design(claim, 1024, KINDS, seed=1000 * seed)
    simulated = SERVERS[server]
    return simulated.is_found_out(
        run(
            design, ask_prompts(SimulatedModel(simulated.see(window)), tokens)
        ).record(),
        window,
    ), sum(tokens)


def print_servers(make: partial[tuple[bool, int]], runs: int) -> None:
    """Print how often each server is found out, and the mean tokens of a certificate."""
    print(f"{'server':26} {'found out':>12} {'tokens':>14}")
    with Pool(os.cpu_count()) as pool:
        for number, server in enumerate(SERVERS):
            outcomes = pool.map(partial(make, number), range(runs))
            right = sum(hit for hit, _ in outcomes)
            tokens = fmean(tokens for _, tokens in outcomes)
            print(f"{server.name:26} {right:5} of {runs:3} {tokens:14,.0f}", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--prompt-runs", type=int, default=5)
    parser.add_argument("--claim", default="16k")
    arguments = parser.parse_args()
    claim = parse_length("1m")
    print_servers(partial(draw_one, claim), arguments.runs)
    if arguments.prompt_runs:
        print(f"\nReal prompts of up to {arguments.claim}")
        print_servers(
            partial(read_one, parse_length(arguments.claim)), arguments.prompt_runs
        )


if __name__ == "__main__":
    main()
