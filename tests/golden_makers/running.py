"""Runs official code on fabricated data, and writes the results as golden files."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def parse_folders(*names: str) -> list[Path]:
    """Return the folders that a module gets on its command line, each as an option: `--official FOLDER`."""
    parser = argparse.ArgumentParser()
    for name in names:
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER")
    return [folder.resolve() for folder in vars(parser.parse_args()).values()]


def run_official(
    code: str, *arguments: Path, data: object = None, folder: Path | None = None
) -> Any:
    """Run code in a process of its own, and return the JSON value that it prints last.

    Args:
        code: Python code that imports the official code. It can import this package and its tests, too. If the official
            code also prints, `GOLDEN` stands before the value.
        arguments: the process's arguments, from `sys.argv[1]` on.
        data: what the process can read as JSON from its input.
        folder: the folder in which the process runs; by default an empty one, which is deleted afterwards.
    """
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", code, *map(str, arguments)],
            input=json.dumps(data),
            capture_output=True,
            text=True,
            cwd=folder or empty,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.rpartition("GOLDEN")[2])


def find_room(room: str) -> Path:
    """Return the folder of tests that has a golden file, such as `benchmarks/ruler`."""
    return Path(__file__).parents[1] / room


def write_golden(room: str, golden: object, **options: Any) -> None:
    """Write `golden.json` into a folder of tests.

    Args:
        options: options of `json.dumps`.
    """
    (find_room(room) / "golden.json").write_text(
        json.dumps(golden, **options) + "\n", encoding="utf-8"
    )
