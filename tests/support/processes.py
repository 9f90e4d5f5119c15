"""Starts `helm-run` in a process that a test can kill."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.commands import RUNNER
from tests.support import programs

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=40,"
ASKED = f"{ENTRY}style=chat,model=vllm/llama-3.1-8b-instruct"
THREADS = 3


def start(
    folder: Path, options: list[str], log: str = "log", entry: str = ASKED
) -> programs.Program:
    """Start `helm-run` on a run entry, by default on forty requests to the server."""
    common = [
        "--run-entries",
        entry,
        "-m",
        "99",
        "--suite",
        "s",
        "-n",
        THREADS,
        "--local-path",
        folder,
        *RUNNER,
    ]
    return programs.start(
        "helm-run", *common, *options, folder=folder, output=folder / log
    )
