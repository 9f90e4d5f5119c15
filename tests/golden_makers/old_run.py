"""Makes `tests/runs/old_run.zip`: a judged run of the version of commit 4a747f8, before the task model was redesigned.

    git worktree add --detach OLD 4a747f8
    PYTHONPATH=OLD/src:OLD python tests/golden_makers/old_run.py old_run

The modules of `tests` that it imports are those of that commit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.judging.deployments import write_judges
from tests.judging.grades import grade
from tests.support.fabricate import build_mirror
from tests.support.servers.llm import serve

ENTRY = "helmet_longqa:task=narrativeqa,length=8k,num_samples=2,judge=tests/plain,model=longctx/lexical"


def make_run(target: Path) -> None:
    """Run `ENTRY` with the runner of that version and pack the files of the run into `target.zip`."""
    with tempfile.TemporaryDirectory() as name, serve(grade) as server:
        folder = Path(name)
        local = write_judges(folder / "local", {"tests/plain": server.openai})
        environment = {
            **os.environ,
            "HELM_LONGCTX_DATA": str(build_mirror(folder / "mirror")),
        }
        command = [
            "helm-run",
            "--run-entries",
            ENTRY,
            "--suite",
            "s",
            "-m",
            "10000",
            "--local-path",
            str(local),
        ]
        command += [
            "--runner-class-name",
            "helm_longctx.runner.LongContextRunner",
            "-o",
            str(folder / "out"),
        ]
        subprocess.run(command, check=True, cwd=folder, env=environment)
        (run,) = (folder / "out/runs/s").glob("helmet*")
        (run / ".lock").unlink(missing_ok=True)
        shutil.make_archive(str(target), "zip", run)


if __name__ == "__main__":
    make_run(Path(sys.argv[1]))
