"""Folders of another user, as a process meets them that may not read and write everything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=1"
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""Takes from root the right to read and write files of others."""

OTHER = 65534


def give_away(path: Path, mode: int) -> None:
    """Give a file, or a folder with its content, to another user."""
    for file in [path, *path.rglob("*")]:
        file.chmod(mode)
        shutil.chown(file, OTHER, OTHER)


def make_cache(folder: Path) -> None:
    """Let another user own the request cache."""
    path = folder / "prod_env/cache/longctx.sqlite"
    path.write_text("not a cache")
    give_away(path, 0o600)


FAULTS: dict[str, Callable[[Path], None]] = {
    "the request cache is another user's": make_cache,
    "prod_env is another user's": lambda folder: give_away(folder / "prod_env", 0o755),
    "prod_env cannot be read": lambda folder: give_away(folder / "prod_env", 0o700),
    "the output folder is another user's": lambda folder: give_away(
        folder / "benchmark_output", 0o755
    ),
}


def find_outcome(folder: Path, fault: Callable[[Path], None]) -> str:
    """Return what is wrong with a run whose folders are another user's; empty if one line says what to do."""
    (folder / "prod_env/cache").mkdir(parents=True)
    (folder / "prod_env/credentials.conf").write_text("")
    (folder / "benchmark_output/scenarios").mkdir(parents=True)
    fault(folder)
    command = (sys.executable, "-m", "helm_longctx", "run", "--entry", ENTRY, "--quiet")
    done = subprocess.run(
        [*WITHOUT_RIGHTS, *command, "--model", "longctx/null"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    is_clear = (
        len(lines) == 1 and "writable" in lines[0] and "Traceback" not in done.stderr
    )
    return (
        ""
        if done.returncode == 2 and is_clear
        else f"{done.returncode}: {done.stderr[-500:]}"
    )


def can_drop_rights() -> bool:
    """Whether this process is root's and can take rights from a command."""
    if shutil.which("setpriv") is None or Path("/proc/self").stat().st_uid != 0:
        return False
    return subprocess.run([*WITHOUT_RIGHTS, "true"], check=False).returncode == 0


def attack_owners(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the outcome of a run with each fault; none where rights cannot be dropped."""
    for number, (name, fault) in enumerate(FAULTS.items() if can_drop_rights() else ()):
        outcome = find_outcome(folder / str(number), fault)
        yield f"{name}: {outcome}", not outcome
