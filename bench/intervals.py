"""Simulates how often intervals contain the true mean, and how often a test tells two equally good models apart.

python bench/intervals.py [ROUNDS]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.statistics.simulation import Case, cases, coverage, false_positives

SHARES = (0.1, 0.3, 0.5, 0.8)
"""Correlations of the scores in a cluster."""


def main(rounds: int) -> None:
    """Print a line for each case."""
    print("mean    n  cluster  correlation  scores      coverage  false positives")
    for case in dict.fromkeys(case for share in SHARES for case in cases(share)):
        print(_line(case, rounds), flush=True)


def _line(case: Case, rounds: int) -> str:
    kind = "0 or 1" if case.binary else "continuous"
    covered, positives = coverage(case, rounds, seed=1), false_positives(case, rounds // 4, seed=2)
    return f"{case.mean:4.2f} {case.n:4} {case.size:8} {case.share:12.1f}  {kind:10} {covered:9.1%} {positives:16.1%}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
