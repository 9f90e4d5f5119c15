"""Starts the real commands as a user does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path

BIN = Path(sys.executable).parent
RUNNER = ("--runner-class-name", "helm_longctx.runner.LongContextRunner")
PARSER_BUG = "SystemError: AST constructor recursion depth mismatch"
"""Of CPython 3.11 (python/cpython issue 106905), seen now and then in other packages' imports under coverage."""


def run(command: str, *arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an installed command in a folder, and return its output as text."""
    line, env = [str(BIN / command), *map(str, arguments)], {**os.environ, **environment}
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, env=env, check=False, timeout=300)
    if PARSER_BUG in done.stderr:
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, env=env, check=False, timeout=300)
    return done


def write_ready(folder: Path, address: str) -> Path:
    """Write the package's deployments as a user copies them, with vLLM at another address.

    They have no windows, because tokenizers would be fetched from the hub for windows.
    """
    folder.mkdir(exist_ok=True)
    for path in (Path(str(resources.files("helm_longctx"))) / "models").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace("http://localhost:8000/v1/", address)
        (folder / path.name).write_text(re.sub(r" *max_sequence_length: .*\n", "", text), encoding="utf-8")
    return folder


def helm_run(folder: Path, *entries: str, suite: str = "s", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `helm-run` on some entries."""
    arguments = ["--run-entries", *entries, "--suite", suite, "-m", "1000"]
    return run("helm-run", *arguments, folder=folder, **environment)


def heed_signals() -> None:
    """Let the child process handle Ctrl-C, which a shell ignores for jobs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
