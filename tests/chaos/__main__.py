"""`python -m tests.chaos [KIND …]`: make rounds of all kinds in turn, or of some kinds, for a time or of a number."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.chaos import batches, judged, machines, rounds, writers
from tests.chaos.chaos import Chaos, chaos

Round = Callable[[Chaos, random.Random, Path], None]

ROUNDS: dict[str, Round] = {
    "runs": rounds.kill_runs,
    "clock": rounds.set_clock,
    "disk": rounds.fill_disk,
    "two": rounds.run_twice,
    "shards": rounds.run_shards,
    "send": batches.kill_sending,
    "collect": batches.kill_collecting,
    "export": writers.kill_export,
    "report": writers.kill_report,
    "ray": machines.kill_ray,
    "jury": judged.kill_a_judge,
    "slow": judged.slow_down_judges,
    "keys": judged.change_keys,
    "tokens": judged.expire_tokens,
}
"""What is done in a round of a kind. It raises an error if something that must hold does not."""


def main() -> None:
    """Make rounds until the time is over. The first has the seed `CHAOS_SEED`, the next the one after it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "kinds",
        nargs="*",
        default=list(ROUNDS),
        metavar="kind",
        help=f"of {', '.join(ROUNDS)}",
    )
    parser.add_argument(
        "--rounds", type=int, help="how many of each kind, instead of CHAOS_SECONDS"
    )
    arguments = parser.parse_args()
    seconds = float(os.environ.get("CHAOS_SECONDS") or 600)
    first = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    folder = Path(tempfile.mkdtemp(prefix="chaos"))
    end = time.monotonic() + seconds
    number = 0
    failed = 0
    with chaos(folder) as made:
        while (
            number < arguments.rounds * len(arguments.kinds)
            if arguments.rounds
            else time.monotonic() < end
        ):
            kind = arguments.kinds[number % len(arguments.kinds)]
            failed += not make_round(made, kind, first + number // len(arguments.kinds))
            number += 1
        print(made.tally)
    print(f"{failed} failures")
    sys.exit(bool(failed))


def make_round(made: Chaos, kind: str, seed: int) -> bool:
    """Make a round, and return whether all holds that must hold. A failure is printed with the command that repeats it."""
    folder = made.folder / f"{kind}-{seed}"
    start = time.monotonic()
    try:
        ROUNDS[kind](made, random.Random(seed), folder)
    except Exception as error:
        text = (
            str(error) if isinstance(error, AssertionError) else traceback.format_exc()
        )
        print(
            f"FAILED {kind} with seed {seed}: {text}; log and files: {folder}",
            flush=True,
        )
        print(
            f"  again: CHAOS_SEED={seed} python -m tests.chaos {kind} --rounds 1",
            flush=True,
        )
        return False
    made.tally.rounds[kind] += 1
    print(f"{kind} {seed}: {time.monotonic() - start:.1f} s", flush=True)
    return True


if __name__ == "__main__":
    main()
