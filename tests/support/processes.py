"""Starts `helm-run` in a process that a test can kill."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.commands import BIN, RUNNER

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=40,"
THREADS = 3


def start(folder: Path, options: list[str], log: str = "log") -> subprocess.Popen[bytes]:
    """Start `helm-run` on forty requests to the server."""
    command = [
        str(BIN / "helm-run"),
        "--run-entries",
        f"{ENTRY}style=chat,model=vllm/llama-3.1-8b-instruct",
        "-m",
        "99",
    ]
    command += ["--suite", "s", "-n", str(THREADS), "--local-path", str(folder), *RUNNER, *options]
    with (folder / log).open("ab") as file:
        return subprocess.Popen(command, cwd=folder, stdout=file, stderr=file)
