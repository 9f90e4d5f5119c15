"""Starting the real commands, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def run(command: str, *arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an installed command in a folder; its output as text."""
    line = [str(BIN / command), *map(str, arguments)]
    return subprocess.run(
        line, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=300
    )


def helm_run(folder: Path, *entries: str, suite: str = "s", **environment: str) -> subprocess.CompletedProcess[str]:
    """`helm-run` on some entries."""
    arguments = ["--run-entries", *entries, "--suite", suite, "-m", "1000"]
    return run("helm-run", *arguments, folder=folder, **environment)
