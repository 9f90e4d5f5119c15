"""Compares the processor time of runs with plain prompts with that of another commit.

    python bench/commits.py COMMIT [--pairs 8] [--questions 1000] [--characters 16000] [--json FILE]

Both trees run the same command on the same questions and the same server, in pairs whose order alternates, with this
environment's packages. The script prints each pair, and the ratio of this tree's processor seconds to the other's with
its 95 % interval. Elapsed seconds would depend on the machine's other work.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import fmean

from clients import local_server
from cost import measure_command
from peers import OURS, commands, write_inputs

TREE = Path(__file__).resolve().parents[1]


def measure(
    other: Path, folder: Path, args: argparse.Namespace
) -> list[tuple[float, float]]:
    """Return the processor seconds of this tree and of the other one, for each pair."""
    pairs = []
    write_inputs(folder, args.questions, args.characters)
    with local_server() as server:
        command = commands(folder, f"{server}/20/v1/", 8, "8k")[OURS]
        for pair in range(args.pairs + 1):
            seconds = {}
            for tree in (TREE, other) if pair % 2 else (other, TREE):
                for made in ("benchmark_output", "prod_env"):
                    shutil.rmtree(folder / made, ignore_errors=True)
                seconds[tree] = measure_command(
                    command, folder, {"PYTHONPATH": str(tree / "src")}
                ).cpu_seconds
            print(
                f"pair {pair}: {seconds[TREE]:.2f} s, before {seconds[other]:.2f} s",
                flush=True,
            )
            if pair:  # the first one compiles modules and fills caches
                pairs.append((seconds[TREE], seconds[other]))
    return pairs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument(
        "--characters", type=int, default=16_000, help="of each context"
    )
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "other")
        work = Path(folder, "work")
        git = ["git", "-C", str(TREE), "worktree"]
        subprocess.run(
            [*git, "add", "--quiet", "--detach", str(other), args.commit], check=True
        )
        work.mkdir()
        try:
            pairs = measure(other, work, args)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
    logs = [math.log(now / before) for now, before in pairs]
    error = 1.96 * math.sqrt(
        sum((log - fmean(logs)) ** 2 for log in logs) / (len(logs) - 1) / len(logs)
    )
    low, mean, high = (
        math.exp(fmean(logs) + offset) for offset in (-error, 0.0, error)
    )
    print(
        f"processor time, this tree / {args.commit}: {mean:.3f} ({low:.3f} to {high:.3f})"
    )
    if args.json:
        args.json.write_text(
            json.dumps(
                {"pairs": pairs, "ratio": mean, "low": low, "high": high}, indent=1
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
