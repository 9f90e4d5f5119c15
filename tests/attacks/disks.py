"""Commands on a full disk: one line says so, what was paid for is kept, and the same command goes on when there is room."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helm_longctx.models.baselines import lexical
from tests.attacks.servers import write_deployments
from tests.support import programs
from tests.support.servers.llm import serve
from tests.support.servers.models import Model

SIZE = 32 << 20
"""Bytes of the disk."""

ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=12,style=chat"
RUN = ("run", "--entry", ENTRY, "--model", "local/m", "--quiet")
FREE = (0, 30_000, 100_000, 200_000, 300_000)
"""Bytes that are free when a run starts. It needs about 400,000."""

TOLD = "No space left on device|disk is full"
"""What the line of an error must say; the second is SQLite's."""

READERS = {
    "summarize": ("summarize", "--suite", "default"),
    "report": ("report", "--suite", "default"),
    "export": ("export", "--suite", "default", "--to", "table.csv"),
}
"""Commands that write what runs have."""


def can_mount() -> bool:
    """Whether this process may mount a small disk."""
    return shutil.which("unshare") is not None and (
        subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0
    )


@contextmanager
def mount(folder: Path) -> Iterator[None]:
    """Mount a small disk at a folder until the block ends."""
    folder.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def fill(folder: Path, free: int) -> Iterator[None]:
    """Fill a disk but for some bytes until the block ends."""
    filler = folder / "filler"
    left = shutil.disk_usage(folder).free
    with filler.open("wb") as file:
        file.write(bytes(max(0, left - free)))
    try:
        yield
    finally:
        filler.unlink()


def find_fault(done: subprocess.CompletedProcess[str]) -> str:
    """Return what is wrong with the end of a command on a full disk; empty if one line names the reason."""
    lines = [line for line in done.stderr.splitlines() if "error:" in line]
    if "Traceback" in done.stdout + done.stderr:
        return done.stderr[-800:]
    if done.returncode == 0:
        return "status 0"
    is_told = len(lines) == 1 and re.search(TOLD, lines[0]) is not None
    return "" if is_told else f"status {done.returncode}: {done.stderr[-500:]}"


def attack_disks(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of commands on a full disk, and of the same commands when there is room again."""
    if not can_mount():
        return
    with serve(lexical.answer, models={"m": Model(), "n": Model()}) as server:
        for number, free in enumerate(FREE):
            disk = folder / str(number)
            with mount(disk):
                write_deployments(disk, f"{server.address}/v1")
                server.calls.clear()
                with fill(disk, free):
                    done = programs.run("helm-longctx", *RUN, folder=disk)
                fault = find_fault(done)
                yield f"run with {free:,} bytes: {fault}", not fault
                kept = count_answers(disk)
                again = programs.run("helm-longctx", *RUN, folder=disk)
                asked = Counter(call.prompt for call in server.calls)
                # A reply that did not fit is asked for again. So many are in flight at once.
                repeated = asked.total() - len(asked)
                yield (
                    f"the run goes on after {kept} kept answers: {again.stderr[-300:]}",
                    again.returncode == 0 and len(asked) == 12 and repeated <= 8,
                )
        disk = folder / "readers"
        with mount(disk):
            write_deployments(disk, f"{server.address}/v1")
            programs.run("helm-longctx", *RUN, folder=disk)
            for name, command in READERS.items():
                with fill(disk, 0):
                    done = programs.run("helm-longctx", *command, folder=disk)
                fault = find_fault(done)
                yield f"{name}: {fault}", not fault
                again = programs.run("helm-longctx", *command, folder=disk)
                yield f"{name} with room: {again.stderr[-300:]}", not again.returncode


def count_answers(folder: Path) -> int:
    """Return how many answers the journals in a folder have."""
    journals = folder.rglob("answers.jsonl")
    return sum(path.read_bytes().count(b"\n") for path in journals)
