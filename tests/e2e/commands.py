"""Starts the real commands as a user does."""

from __future__ import annotations

import re
import signal
import subprocess
from importlib import resources
from pathlib import Path

from tests.support.programs import run

RUNNER = ("--runner-class-name", "helm_longctx.runner.LongContextRunner")


def write_ready(folder: Path, address: str) -> Path:
    """Write the package's deployments as a user copies them, with vLLM at another address.

    They have no windows, because tokenizers would be fetched from the hub for windows.
    """
    folder.mkdir(exist_ok=True)
    for path in (Path(str(resources.files("helm_longctx"))) / "models").glob("*.yaml"):
        text = path.read_text(encoding="utf-8").replace(
            "http://localhost:8000/v1/", address
        )
        (folder / path.name).write_text(
            re.sub(r" *max_sequence_length: .*\n", "", text), encoding="utf-8"
        )
    return folder


def helm_run(
    folder: Path, *entries: str, suite: str = "s", most: int = 1000, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `helm-run` on some entries, with at most so many instances of each."""
    arguments = ["--run-entries", *entries, "--suite", suite, "-m", most]
    return run("helm-run", *arguments, folder=folder, **environment)


def heed_signals() -> None:
    """Let the child process handle Ctrl-C, which a shell ignores for jobs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
