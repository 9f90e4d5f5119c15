"""Runs programs that nobody has read, such as those that models write, in a sandbox of bubblewrap.

A program sees /usr and nothing else of the machine's files, read-only; an empty /tmp in memory; its own processes; and
no network. It inherits no environment variable. Limits hold for time, memory, processes, and the size of what it
writes. None of this needs administrator's rights; a process that has them gives them up for the program.
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

from helm_longctx.errors import InputError, shorten

SETTING = "HELM_LONGCTX_SANDBOX"
"""The environment variable that allows programs to be run; it names the sandbox."""
BUBBLEWRAP = "bubblewrap"
PROGRAM = "/program"
"""Where the sandbox has the executable that `run` is given."""

MEMORY = 1 << 30
"""Bytes of memory of each process, mapped files and those reserved but not used included."""
WRITTEN = 64 << 20
"""Bytes of the output, of the error output, and of each file."""
TEMPORARY = 256 << 20
"""Bytes of all files in /tmp."""
OPEN_FILES = 64

_FOLDER = "/tmp"  # noqa: S108  # the sandbox's own

_ARCHITECTURES = {"x86_64": (0xC000003E, (29, 64, 68, 319)), "aarch64": (0xC00000B7, (194, 190, 186, 279))}
"""By machine, its number in the kernel's `AUDIT_ARCH_*`, and those of shmget, semget, msgget and memfd_create."""

_SLOTS = threading.BoundedSemaphore(os.cpu_count() or 1)
"""As many programs at a time as there are processors: more would run into their limits of time."""


@dataclass(frozen=True)
class Outcome:
    """What became of a program.

    Args:
        output, errors: what it wrote, at most `WRITTEN` bytes each.
        code: its exit status; 128 and the signal's number if a signal ended it; None if its time ran out.
    """

    output: bytes
    errors: bytes
    code: int | None


def check_sandbox(purpose: str) -> None:
    """Check that programs may be run here, and that the sandbox works.

    Args:
        purpose: what is run. The error starts with it.

    Raises:
        InputError: the setting is missing or unknown, or this machine has no such sandbox.
    """
    name = os.environ.get(SETTING)
    if not name:
        raise InputError(f"{purpose} only if you allow it: set {SETTING}={BUBBLEWRAP}, which runs them in a sandbox")
    if name != BUBBLEWRAP:
        raise InputError(f"{SETTING}={shorten(name)} is not allowed; allowed: {BUBBLEWRAP}")
    if platform.machine() not in _ARCHITECTURES or not (shutil.which("bwrap") and shutil.which("prlimit")):
        raise InputError(
            f"{SETTING}={name} needs Linux on {' or '.join(_ARCHITECTURES)} with the commands bwrap (bubblewrap 0.8 or"
            " newer) and prlimit (util-linux)"
        )
    _try_sandbox()


@cache
def _try_sandbox() -> None:
    run(["true"], seconds=30)


def run(
    command: Sequence[str], *, seconds: float, given: bytes = b"", program: bytes = b"", processes: int = 1
) -> Outcome:
    """Run a command in a sandbox of its own and wait for its end. It has to be allowed (`check_sandbox`).

    Args:
        command: its words. Only programs in /usr and `PROGRAM` exist.
        seconds: the longest time, in wall-clock seconds. Everything is killed after it.
        given: its input.
        program: the content of the executable `PROGRAM`.
        processes: most processes and threads, itself included.

    Raises:
        InputError: the sandbox cannot be started.
    """
    with _SLOTS, ExitStack() as stack:
        files = [stack.enter_context(_memory_file(content)) for content in (program, _denials(), b"", b"", b"")]
        executable, denials, output, errors, status = files
        inherited = [*(file.fileno() for file in (executable, denials, status)), stack.enter_context(_wait_for_all())]
        process = subprocess.Popen(
            [*_sandbox(executable, denials, status), *_limits(seconds, processes), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            pass_fds=inherited,
            cwd="/",
            **_unprivileged(),
        )
        is_finished = _finish(process, given, seconds)
        # bubblewrap notes the exit status only if the command itself was started.
        if is_finished and b'"exit-code"' not in _content(status):
            reason = _content(errors).decode(errors="replace").strip()
            raise InputError(f"bubblewrap (0.8 or newer) starts no sandbox here: {shorten(reason)}")
        return Outcome(_content(output), _content(errors), process.returncode if is_finished else None)


def _finish(process: subprocess.Popen[bytes], given: bytes, seconds: float) -> bool:
    """Give a process its input and wait for its end. Whether it came in time; if not, the process is killed."""
    with process:
        try:
            process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            # bubblewrap takes the sandbox with it (--die-with-parent), also if we are interrupted.
            process.kill()
    return True


def _sandbox(executable: BinaryIO, denials: BinaryIO, status: BinaryIO) -> list[str]:
    """Return the words of bubblewrap's command line before the command."""
    return [
        *("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--seccomp", str(denials.fileno())),
        *("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
        # What bubblewrap mounts can be written to, and grow as large as the memory, unless it is mounted anew.
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--size", str(TEMPORARY), "--tmpfs", _FOLDER),
        *("--perms", "0555", "--ro-bind-data", str(executable.fileno()), PROGRAM, "--remount-ro", "/"),
        *("--chdir", _FOLDER, "--json-status-fd", str(status.fileno()), "--"),
    ]


def _limits(seconds: float, processes: int) -> list[str]:
    """Return the words that set the limits of the kernel for the command after them."""
    # Set in the sandbox, because bubblewrap itself needs a process more.
    limits = {
        "as": MEMORY,
        "fsize": WRITTEN,
        "nofile": OPEN_FILES,
        "nproc": processes,
        "cpu": int(seconds) + 1,
        "core": 0,
    }
    return ["prlimit", *(f"--{name}={value}" for name, value in limits.items()), "--"]


def _unprivileged() -> dict[str, Any]:
    """Return the arguments of `Popen` for a user without rights if this is root, whom no limit of processes binds."""
    return {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}


def _denials() -> bytes:
    """Return the program for the kernel's seccomp that denies the calls by which memory escapes the limits.

    Memory that is shared under a name, and queues, count for no process (RLIMIT_AS) and no file system.
    """
    load, if_equal, if_least, end = 0x20, 0x15, 0x35, 0x06
    kill, deny, allow = 0x80000000, 0x00050001, 0x7FFF0000  # deny: the call fails with EPERM
    architecture, calls = _ARCHITECTURES[platform.machine()]
    steps = [
        *((load, 0, 0, 4), (if_equal, 1, 0, architecture), (end, 0, 0, kill)),
        # The same kernel can take calls by other numbers: those of 32-bit programs, and of x32.
        *((load, 0, 0, 0), (if_least, 0, 1, 0x40000000), (end, 0, 0, kill)),
        *(step for call in calls for step in ((if_equal, 0, 1, call), (end, 0, 0, deny))),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


@contextmanager
def _wait_for_all() -> Iterator[int]:
    """Make an open file for a process to inherit. At the end, wait until it and all that it started are dead.

    The kernel kills what is left in a sandbox only some time after the sandbox.
    """
    reader, writer = os.pipe()
    try:
        yield writer
    finally:
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            file.read()


@contextmanager
def _memory_file(content: bytes) -> Iterator[BinaryIO]:
    """Make a file without a name, in memory: a full disk cannot make a right answer wrong."""
    with os.fdopen(os.memfd_create("sandbox"), "w+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()
