"""`python -m tests.mutants`: run the tests on a random sample of mutants, and print those that survive.

Results are added to a file, so an interrupted run can be continued. Mutants that survived are tried again, because tests
may have been added. `survivors.yaml` lists changes that no test can notice, with the reason. They do not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.mutants.mutate import Mutant, list_mutants
from tests.mutants.rooms import ROOT, list_rooms
from tests.mutants.run import preload, run_tests

BAR = 0.9
"""Share of the mutants that tests have to notice."""

RESULTS = ROOT / "build" / "mutants.jsonl"

SURVIVORS = Path(__file__).with_name("survivors.yaml")

LONGEST = 600
"""Seconds that the tests of a module may need without a change."""


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
    args = parser.parse_args()
    rooms = {
        path: tests for path, tests in list_rooms() if _is_meant(path, args.modules)
    }
    every = [mutant for path in rooms for mutant in list_mutants(path)]
    sample = random.Random(args.seed).sample(
        every, min(args.mutants or len(every), len(every))
    )
    print(f"{len(sample)} of {len(every)} mutants, seed {args.seed}", flush=True)
    preload()
    counts = Counter(_judge(mutant, rooms[mutant.path]) for mutant in sample)
    share = counts["killed"] / max(counts["killed"] + counts["survived"], 1)
    print(f"{share:.1%} killed: {dict(counts)}")
    sys.exit(share < BAR)


def _is_meant(path: Path, parts: list[str]) -> bool:
    return not parts or any(part in path.as_posix() for part in parts)


def _judge(mutant: Mutant, tests: tuple[str, ...]) -> str:
    """Return whether a mutant is killed, survives, or is listed. Survivors are printed."""
    before, after = mutant.change()
    if is_listed(mutant.module, before, after):
        return "equivalent"
    digest = mutant.digest()
    outcome = _known().get(digest, {}).get("outcome")
    if outcome != "killed":
        limit = _limit(mutant.path, tests)
        start = time.monotonic()
        outcome = (
            "survived"
            if run_tests(mutant.path, mutant.source(), tests, limit)
            else "killed"
        )
        row = {
            "digest": digest,
            "outcome": outcome,
            "seconds": round(time.monotonic() - start, 1),
        }
        _write({"module": mutant.module, "before": before, "after": after, **row})
    if outcome == "survived":
        print(
            f"survived {mutant.module}:{mutant.line}\n  - {before}\n  + {after}",
            flush=True,
        )
    return outcome


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


@cache
def _known() -> dict[str, dict[str, Any]]:
    """Return the results of earlier runs, by digest."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {row["digest"]: row for row in map(json.loads, lines)}


@cache
def _limit(path: Path, tests: tuple[str, ...]) -> float:
    """Return the seconds after which a mutant counts as killed: several times what the tests need without a change.

    Raises:
        SystemExit: the tests fail without a change.
    """
    source = path.read_text(encoding="utf-8")
    folders = [ROOT / test for test in tests]
    files = sorted(
        file
        for folder in folders
        for file in ([folder] if folder.is_file() else folder.glob("test_*.py"))
    )
    digest = hashlib.sha256(
        "\n".join(
            [source, *(file.read_text(encoding="utf-8") for file in files)]
        ).encode()
    )
    row = _known().get(digest.hexdigest())
    if row is None:
        start = time.monotonic()
        if run_tests(path, source, tests, LONGEST) is not True:
            sys.exit(f"{' '.join(tests)}: these tests fail without a change")
        row = {
            "digest": digest.hexdigest(),
            "outcome": "unchanged",
            "seconds": round(time.monotonic() - start, 1),
        }
        _write(row)
    return float(30 + 5 * row["seconds"])


def _write(row: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
