"""`python -m tests.fuzz`: run all cases, some kinds of them, or one case again."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.fuzz import archives, commands, judges, loaders, records, replies, runs
from tests.fuzz.cases import SEED, Failure, Kind, run_case

MODULES = (commands, loaders, judges, replies, records, archives, runs)
KINDS = {module.KIND.name: module.KIND for module in MODULES}


def main() -> None:
    """Run cases and print those that fail; the exit status is 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "kinds",
        nargs="*",
        default=list(KINDS),
        metavar="kind",
        help=f"of {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"for other cases; default {SEED}"
    )
    parser.add_argument(
        "--cases",
        type=int,
        help="how many for each target, instead of what the bar asks for",
    )
    parser.add_argument("--case", help="run this case alone, e.g. loaders/nq/37")
    arguments = parser.parse_args()
    logging.disable()  # of the code under test
    if arguments.case:
        kind, target, number = arguments.case.split("/")
        outcomes = [run_case(KINDS[kind], target, int(number), arguments.seed)]
    else:
        print(f"seed {arguments.seed}", flush=True)
        outcomes = [
            outcome
            for name in arguments.kinds
            for outcome in run_kind(KINDS[name], arguments.seed, arguments.cases)
        ]
    failures = [failure for failure in outcomes if failure]
    for failure in failures if arguments.case else ():
        print(failure.about)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


def run_kind(kind: Kind, seed: int, cases: int | None) -> list[Failure]:
    """Run a kind's cases on each of its targets; each failure is printed with the command that repeats it."""
    start = time.monotonic()
    failures = []
    for target in kind.targets:
        begun = time.monotonic()
        for number in range(cases or kind.cases):
            if failure := run_case(kind, target, number, seed):
                failures.append(failure)
                print(f"FAILED {failure.case}: {failure.about}", flush=True)
                print(
                    f"  again: python -m tests.fuzz --seed {seed} --case {failure.case}",
                    flush=True,
                )
        print(
            f"{kind.name}/{target}: {cases or kind.cases} cases in {time.monotonic() - begun:.0f} s",
            flush=True,
        )
    count = len(kind.targets) * (cases or kind.cases)
    print(
        f"{kind.name}: {count} cases in {time.monotonic() - start:.0f} s, {len(failures)} failures",
        flush=True,
    )
    return failures


if __name__ == "__main__":
    main()
