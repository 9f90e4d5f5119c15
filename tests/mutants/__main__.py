"""`python -m tests.mutants`: run the tests on a random sample of mutants, and print those that survive.

The tests of a mutant are those that execute the changed statement. Which ones do is measured first, and again for what
has changed since. Results are added to a file, so an interrupted run can be continued. Mutants that survived are tried
again, because tests may have been added. `survivors.yaml` lists changes that no test can notice, with the reason. They
do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml

from tests.mutants.choosing import choose_tests
from tests.mutants.measuring import (
    MeasuredFile,
    list_stale,
    measure,
    read_measured,
)
from tests.mutants.mutate import Mutant, list_mutants
from tests.mutants.rooms import ROOT, list_modules
from tests.mutants.run import Outcome, preload, run_tests
from tests.support.fabricate import SHARED_MIRROR

BAR = 0.84
"""Share of the mutants that tests have to notice."""

RESULTS = ROOT / "build" / "mutants.jsonl"

SURVIVORS = Path(__file__).with_name("survivors.yaml")


def main() -> None:
    """Run the sample. The exit status is 1 if too many mutants survive."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__
    )
    parser.add_argument(
        "modules", nargs="*", help="parts of modules' paths; all without any"
    )
    parser.add_argument(
        "--mutants", type=int, help="size of the random sample; all without it"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    paths = [path for path in list_modules() if _is_meant(path, args.modules)]
    mutants = [mutant for path in paths for mutant in list_mutants(path)]
    size = min(args.mutants or len(mutants), len(mutants))
    sample = random.Random(args.seed).sample(mutants, size)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[SHARED_MIRROR] = folder
        stale = list_stale()
        if stale:
            print(f"measuring {len(stale)} files of tests", flush=True)
            measure(stale)
        print(f"{size} of {len(mutants)} mutants, seed {args.seed}", flush=True)
        preload()
        judge = _Judge(list(read_measured().values()))
        outcomes = judge.judge_all(sample, args.processes)
    counts = Counter(outcomes)
    share = counts["killed"] / max(counts["killed"] + counts["survived"], 1)
    print(f"{share:.1%} killed: {dict(counts)}")
    sys.exit(share < BAR)


def _is_meant(path: Path, parts: list[str]) -> bool:
    return not parts or any(part in path.as_posix() for part in parts)


class _Judge:
    """Runs the tests of mutants.

    Args:
        files: what the tests execute.
    """

    def __init__(self, files: list[MeasuredFile]):
        self._files = files
        self._seconds = {
            test: seconds for file in files for test, seconds in file.seconds.items()
        }
        self._unsound: set[str] = set()

    def judge_all(self, mutants: list[Mutant], processes: int) -> list[str]:
        """Return of each mutant whether it is killed, survives, or is listed, and print those that survive.

        A test counts only if it passes without a change. That is checked at the end, for all tests that failed.
        """
        left = [mutant for mutant in mutants if not _is_settled(mutant)]
        while left:
            self._judge_at_once(left, processes)
            rows = _read_results()
            failed = {
                test for mutant in left for test in rows[mutant.digest()]["failed"]
            }
            unsound = self._find_unsound(sorted(failed))
            self._unsound |= unsound
            left = [
                mutant
                for mutant in left
                if not unsound.isdisjoint(rows[mutant.digest()]["failed"])
            ]
        rows = _read_results()
        outcomes = []
        for mutant in mutants:
            before, after = mutant.change()
            if is_listed(mutant.module, before, after):
                outcomes.append("equivalent")
                continue
            row = rows[mutant.digest()]
            outcomes.append(row["outcome"])
            if row["outcome"] == "survived":
                print(
                    f"survived {mutant.module}:{mutant.line} ({row['tests']} tests)\n"
                    f"  - {before}\n  + {after}"
                )
        return outcomes

    def _judge_at_once(self, mutants: list[Mutant], processes: int) -> None:
        """Judge mutants in several processes, which write their results to the file."""
        context = get_context("fork")
        workers = [
            context.Process(target=self._judge_each, args=(mutants[start::processes],))
            for start in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if any(worker.exitcode for worker in workers):
            sys.exit("a process of the tool ended early")

    def _judge_each(self, mutants: list[Mutant]) -> None:
        for mutant in mutants:
            tests = [
                test
                for test in choose_tests(mutant.path, mutant.line, self._files)
                if test not in self._unsound
            ]
            outcome = Outcome(passed=True, failed=(), seconds=0)
            if tests:
                limit = self._limit(tests)
                outcome = run_tests(mutant.path, mutant.source(), tests, limit)
            before, after = mutant.change()
            row = {
                "digest": mutant.digest(),
                "module": mutant.module,
                "line": mutant.line,
                "before": before,
                "after": after,
                "outcome": "survived" if outcome.passed else "killed",
                "tests": len(tests),
                "failed": outcome.failed,
                "seconds": outcome.seconds,
            }
            _write(row)

    def _find_unsound(self, tests: list[str]) -> set[str]:
        """Return those of the tests that fail without a change, and print them."""
        if not tests:
            return set()
        path = list_modules()[0]
        outcome = run_tests(
            path,
            path.read_text(encoding="utf-8"),
            tests,
            self._limit(tests),
            most_failures=len(tests),
        )
        if not outcome.passed and not outcome.failed:
            sys.exit(f"tests end without a result: {' '.join(tests)}")
        for test in outcome.failed:
            print(f"fails without a change: {test}", flush=True)
        return set(outcome.failed)

    def _limit(self, tests: list[str]) -> float:
        """Return the processor seconds that tests may use: several times what they need without a change."""
        return 30 + 5 * sum(self._seconds[test] for test in tests)


def _is_settled(mutant: Mutant) -> bool:
    """Return whether a mutant is listed, or was killed in an earlier run."""
    if is_listed(mutant.module, *mutant.change()):
        return True
    return _read_results().get(mutant.digest(), {}).get("outcome") == "killed"


def is_listed(module: str, before: str, after: str) -> bool:
    """Whether a change is listed as one that no test can notice."""
    listed = _listed()
    patterns = ((change["before"], change["after"]) for change in listed["everywhere"])
    if any(re.search(old, before) and re.search(new, after) for old, new in patterns):
        return True
    return any(
        (change["before"], change["after"]) == (before, after)
        for change in listed.get(module, ())
    )


@cache
def _listed() -> dict[str, list[dict[str, str]]]:
    """Return the changes that no test can notice, by module."""
    return dict(yaml.safe_load(SURVIVORS.read_text(encoding="utf-8")))


def _read_results() -> dict[str, dict[str, Any]]:
    """Return the results of all runs, by digest."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {row["digest"]: row for row in map(json.loads, lines)}


def _write(row: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
