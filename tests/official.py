"""Results of benchmarks' official code: how golden files are made, and the digests in them."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_golden(script: str, module: str) -> None:
    """Run a script with the official code in a process of its own, and write what it prints beside a module.

    Args:
        script: Python code whose first argument is the folder of the command line's `--official`. It prints JSON after
            the word GOLDEN.
        module: the file of the module; its folder receives golden.json.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--official", type=Path, required=True, metavar="FOLDER")
    official = parser.parse_args().official.resolve()
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{script}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-X", "utf8", "-c", code, str(official)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    Path(module).with_name("golden.json").write_text(done.stdout.rpartition("GOLDEN")[2], encoding="utf-8")


def digest(texts: Iterable[str]) -> str:
    """One SHA-256 of all texts and their order."""
    return hashlib.sha256(b"".join(hashlib.sha256(text.encode()).digest() for text in texts)).hexdigest()
