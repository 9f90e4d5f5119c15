"""Measures seconds and memory of `summarize`, `report` and `compare` for 100 run entries of 10 models.

    python -m bench.pages.suite [--answers 50] [--folder DIR] [--json FILE]

The entries are 20 tasks of HELMET at five lengths. Runs are fabricated, with 1,000 runs in all; 50 answers each take
one GB of disk. A folder that has them already is used again. Seconds include imports.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.cost import measure_command
from tests.apps.report.suites import write_suite
from tests.support.programs import BIN

from helm_longctx.tasks.registry import find_benchmark

LENGTHS = ("8k", "16k", "32k", "64k", "128k")
TASKS = 20
MODELS = {f"acme/model-{number}": 0.95 - 0.08 * number for number in range(10)}
"""The models, with their skills."""

TEXT = "by the old harbour"
COMMANDS = {
    "summarize": [],
    "report": [],
    "compare": [*list(MODELS)[:2], "--benchmark", "helmet"],
}
"""The measured commands, with their arguments."""


def entries() -> list[str]:
    """Return the run entries."""
    categories = find_benchmark("helmet").entries.items()
    tasks = [
        (entry, task.argument)
        for entry, category in categories
        if category.averaged
        for task in category.tasks
    ]
    return [
        f"{entry}:task={task},length={length}"
        for entry, task in tasks[:TASKS]
        for length in LENGTHS
    ]


def measure(folder: Path, answers: int) -> list[dict[str, Any]]:
    """Write the suite unless it is there, and measure each command."""
    suite = folder / "benchmark_output/runs/s"
    if not suite.exists():
        write_suite(suite, entries(), MODELS, answers, TEXT)
    rows = []
    for command, arguments in COMMANDS.items():
        cost = measure_command(
            [BIN / "helm-longctx", command, *arguments, "--suite", "s"], folder
        )
        rows.append({"command": command, **asdict(cost)})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=50, help="of each run")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the suite is kept; by default a temporary folder",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measure(folder, args.answers)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
