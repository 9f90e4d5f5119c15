"""Simulates how often the decisions of certificates, gates and other verdicts are right, with known truths.

python bench/decisions.py [--rounds 100]

Each module `decisions_*.py` beside this one has rows: what was measured, and the figures. docs/statistics.md has them.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Print the rows of all modules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    print(f"seeds 0 to {rounds - 1}")
    for path in sorted(Path(__file__).parent.glob("decisions_*.py")):
        for name, figures in import_module(path.stem).make_rows(rounds):
            print(f"{path.stem.removeprefix('decisions_')}: {name}: {figures}", flush=True)


if __name__ == "__main__":
    main()
