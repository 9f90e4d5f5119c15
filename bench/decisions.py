"""Simulates the decisions of the commands, and prints how often they are wrong, and how often they decide.

python bench/decisions.py [PART ...] [--rounds N] [--seed N]

Each part is in a file of its own, `decisions_PART.py`, whose function `rows` yields lines of a table.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> None:
    """Print the table of each part."""
    known = sorted(path.stem.removeprefix("decisions_") for path in FOLDER.glob("decisions_*.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(known)}; all without a name"
    )
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if unknown := set(args.parts) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: give {', '.join(known)}")
    sys.path.insert(0, str(FOLDER))
    for part in args.parts or known:
        print(f"{part} ({args.rounds} rounds, seed {args.seed})", flush=True)
        for row in import_module(f"decisions_{part}").rows(args.rounds, args.seed):
            print(f"  {row}", flush=True)


if __name__ == "__main__":
    main()
