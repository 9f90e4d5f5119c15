"""`python -m tests.attacks [SURFACE …]`: try faults on each surface, and print how many were tried and held."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.attacks.disks import attack_disks
from tests.attacks.folders import FOLDERS, find_refusal, make_folder, make_source
from tests.attacks.gates import kill_gates
from tests.attacks.hubs import attack_checks, attack_downloads
from tests.attacks.owners import attack_owners
from tests.attacks.servers import ACTIONS, COMMANDS, find_fault

Attack = tuple[str, bool]
"""What was tried, and whether it held."""

ROOT = Path(__file__).parents[2]

TESTS = {
    "models without values and special tokens": "tests/evaluation/test_transformers.py",
    "patterns": "tests/test_patterns.py",
    "streams and locales": "tests/cli/test_streams.py",
    "calls of evaluate at the same time": "tests/evaluation/test_at_the_same_time.py",
    "changed models and functions": "tests/evaluation/test_resuming.py",
    "hostile replies": "tests/models/test_hostile_replies.py",
    "code in the sandbox": "tests/tasks/test_sandbox.py",
    "archives": "tests/data/test_bombs.py",
    "records and prompts of runs": "tests/runs/test_records.py",
    "limits of cost": "tests/runner/test_spending.py",
    "programs of methods": "tests/runner/test_programs.py",
    "servers that restart": "tests/models/apis/test_restarts.py",
    "broken candidates of gate --logprobs": "tests/apps/test_gate_logprobs.py",
}
"""The tests of other surfaces: each case is a fault."""


IN_PARALLEL = 4
"""Commands that are attacked at the same time. They mostly wait."""


def attack_folders() -> Iterator[Attack]:
    """Yield the outcome of asking each broken folder of a model. Without peft, those with an adapter are left out."""
    has_peft = find_spec("peft") is not None
    if not has_peft:
        left_out = sum("adapter" in fault for fault in FOLDERS)
        print(f"peft is missing, so {left_out} folders with an adapter are not tried")
    with tempfile.TemporaryDirectory() as name:
        source = make_source(Path(name) / "source")
        yield "a whole folder answers", find_refusal({"path": str(source)}) == ""
        for number, fault in enumerate(FOLDERS):
            if "adapter" in fault and not has_peft:
                continue
            entry = make_folder(source, Path(name) / str(number), fault)
            refusal = find_refusal(entry)
            yield fault, bool(refusal) and "\n" not in refusal


def interrupt_calls(rounds: int = 20) -> Iterator[Attack]:
    """Yield the outcome of Ctrl-C and SIGTERM at random moments of a call."""
    from tests.evaluation import interrupted

    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            status, out, err = interrupted.run_function(
                interrupted.interrupt_calls, 1, rounds
            )
        finally:
            os.chdir(before)
    for number in range(rounds):
        yield (
            f"signal {number}: {out.strip()} interrupted {err[-300:]}",
            status == 0,
        )


def attack_commands() -> Iterator[Attack]:
    """Yield the outcome of each command with each hostile server."""
    pairs = [*itertools.product(COMMANDS, ACTIONS)]
    with ThreadPoolExecutor(IN_PARALLEL) as pool:
        for (command, action), fault in zip(
            pairs, pool.map(_attack_command, pairs), strict=True
        ):
            yield f"{command}, {action}: {fault}", not fault


def _attack_command(pair: tuple[str, str]) -> str:
    """Return what is wrong with the end of a command whose server does an action; empty if nothing is."""
    command, action = pair
    with tempfile.TemporaryDirectory() as folder:
        return find_fault(command, action, Path(folder))


def attack_in_folder(attack: Callable[[Path], Iterator[Attack]]) -> Iterator[Attack]:
    """Yield the outcomes of attacks that need an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield from attack(Path(folder))


def run_tests(file: str) -> Iterator[Attack]:
    """Yield the outcome of each case of a file of tests."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "-p",
        "no:cacheprovider",
        file,
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        outcome, _, case = line.partition(" ")
        if outcome in ("PASSED", "FAILED", "ERROR"):
            yield case, outcome == "PASSED"


SURFACES: dict[str, Callable[[], Iterator[Attack]]] = {
    "folders of models": attack_folders,
    "signals in evaluate": interrupt_calls,
    "hostile servers of commands": attack_commands,
    "hostile hubs of fetch --check": lambda: attack_in_folder(attack_checks),
    "downloads of fetch": lambda: attack_in_folder(attack_downloads),
    "full disks": lambda: attack_in_folder(attack_disks),
    "kills of gate": lambda: attack_in_folder(lambda folder: kill_gates(folder, 6)),
    "folders of another user": lambda: attack_in_folder(attack_owners),
    **{surface: lambda file=file: run_tests(file) for surface, file in TESTS.items()},  # type: ignore[misc]
}
"""What is attacked."""


PAGE = ROOT / "docs/measurements.md"
START = "<!-- The table is written by `python -m tests.attacks --page`. -->\n"
HEAD = "| surface | tried | held |\n|---|---|---|"


@dataclass
class Row:
    """What was tried on a surface."""

    surface: str
    tried: int
    held: int

    @property
    def line(self) -> str:
        """The row of the table."""
        return f"| {self.surface} | {self.tried} | {self.held} |"

    @classmethod
    def parse(cls, line: str) -> Row:
        """Read a row of the table."""
        surface, tried, held = line.strip("| ").split(" | ")
        return cls(surface=surface, tried=int(tried), held=int(held))


def write_page(rows: list[Row]) -> None:
    """Write rows into the table on the page of measurements, in place of earlier rows of the same surfaces."""
    before, _, after = PAGE.read_text(encoding="utf-8").partition(START)
    table, _, rest = after.lstrip("\n").partition("\n\n")
    earlier = [Row.parse(line) for line in table.splitlines()[2:]]
    by_surface = {row.surface: row for row in (*earlier, *rows)}
    kept = [by_surface[surface] for surface in SURFACES if surface in by_surface]
    lines = "\n".join([HEAD, *(row.line for row in (*kept, add_up(kept)))])
    PAGE.write_text(f"{before}{START}\n{lines}\n\n{rest}", encoding="utf-8")


def add_up(rows: list[Row]) -> Row:
    """Return the last row of a table."""
    return Row(
        surface="in all",
        tried=sum(row.tried for row in rows),
        held=sum(row.held for row in rows),
    )


def main() -> None:
    """Attack surfaces and print a row of a table for each."""
    # A shell lets its background programs ignore SIGINT, and so would the programs that this one interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.disable(logging.CRITICAL)  # what is refused is also logged
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks", description=__doc__
    )
    parser.add_argument(
        "surfaces", nargs="*", metavar="surface", help=f"of {', '.join(SURFACES)}"
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="write the table into docs/measurements.md, too",
    )
    arguments = parser.parse_args()
    chosen = arguments.surfaces or list(SURFACES)
    failed = []
    rows: list[Row] = []
    print(HEAD, flush=True)
    for surface in chosen:
        tried = 0
        held = 0
        for attack, has_held in SURFACES[surface]():
            tried += 1
            held += has_held
            if not has_held:
                failed.append(f"{surface}: {attack}")
                print(f"did not hold: {failed[-1]}", file=sys.stderr, flush=True)
        rows.append(Row(surface=surface, tried=tried, held=held))
        print(rows[-1].line, flush=True)
        if arguments.page:
            write_page(rows)
    print(add_up(rows).line)
    print("\n".join(failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
