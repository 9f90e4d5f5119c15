"""Runs programs that are not trusted, such as those that models write, in a sandbox of bubblewrap.

Of the machine's files, a program sees only /usr, and cannot change it. It has an empty /tmp in memory, sees only its
own processes, and has no network and no environment variables of this process. Its time, memory, processes and files
are limited. This needs no administrator's rights. If this process has them, the program does not get them.
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
"""The environment variable that allows programs to be run. Its value is the name of the sandbox."""
BUBBLEWRAP = "bubblewrap"
PROGRAM = "/program"
"""Path in the sandbox of the executable that is passed to `run`."""

MEMORY = 1 << 30
"""Bytes of address space of each process. Mapped files and reserved memory count, too."""
WRITTEN = 64 << 20
"""Bytes of the output, of the error output, and of each file."""
TEMPORARY = 256 << 20
"""Bytes of all files in /tmp."""
OPEN_FILES = 64

_FOLDER = "/tmp"  # noqa: S108  # in the sandbox

_ARCHITECTURES = {"x86_64": (0xC000003E, (29, 64, 68, 319)), "aarch64": (0xC00000B7, (194, 190, 186, 279))}
"""For each machine, the kernel's number of the architecture (`AUDIT_ARCH_*`), and the numbers of the system calls
shmget, semget, msgget and memfd_create."""

_SLOTS = threading.BoundedSemaphore(os.cpu_count() or 1)
"""As many programs run at the same time as there are processors. With more, some would exceed their time."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program.

    Args:
        output, errors: its standard output and standard error, at most `WRITTEN` bytes each.
        code: its exit status; 128 plus the signal's number if a signal ended it; None if its time was exceeded.
    """

    output: bytes
    errors: bytes
    code: int | None


def check_sandbox(purpose: str) -> None:
    """Check that programs may be run here, and that the sandbox works.

    Args:
        purpose: text that says which programs are run, and ends with a verb. An error starts with it.

    Raises:
        InputError: the setting is missing or wrong, or this machine has no such sandbox.
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
    command: Sequence[str], *, seconds: float, input: bytes = b"", program: bytes = b"", processes: int = 1
) -> Outcome:
    """Run a command in a new sandbox, and wait until it ends. Call `check_sandbox` first.

    Args:
        command: the program and its arguments. The program is in /usr, or is `PROGRAM`.
        seconds: limit in wall-clock seconds, after which all processes in the sandbox are killed.
        input: the standard input.
        program: the content of the executable `PROGRAM`.
        processes: largest number of processes and threads, including the command itself.

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
        is_finished = _finish(process, input, seconds)
        # bubblewrap writes the exit status only if the command itself was started.
        if is_finished and b'"exit-code"' not in _content(status):
            reason = _content(errors).decode(errors="replace").strip()
            raise InputError(f"bubblewrap (0.8 or newer) cannot start a sandbox on this machine: {shorten(reason)}")
        return Outcome(_content(output), _content(errors), process.returncode if is_finished else None)


def _finish(process: subprocess.Popen[bytes], input: bytes, seconds: float) -> bool:
    """Send a process its input, and wait until it ends. Return False if it exceeds the time and was killed."""
    with process:
        try:
            process.communicate(input, timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            # The sandbox dies with bubblewrap (--die-with-parent), also if this thread is interrupted.
            process.kill()
    return True


def _sandbox(executable: BinaryIO, denials: BinaryIO, status: BinaryIO) -> list[str]:
    """Return bubblewrap's command line up to the command that it runs."""
    return [
        *("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--seccomp", str(denials.fileno())),
        *("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
        # Without `--remount-ro`, a program could write to the file systems that bubblewrap makes, up to all memory.
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--size", str(TEMPORARY), "--tmpfs", _FOLDER),
        *("--perms", "0555", "--ro-bind-data", str(executable.fileno()), PROGRAM, "--remount-ro", "/"),
        *("--chdir", _FOLDER, "--json-status-fd", str(status.fileno()), "--"),
    ]


def _limits(seconds: float, processes: int) -> list[str]:
    """Return a command line that sets the kernel's limits for the command that is appended to it."""
    # The limits are set in the sandbox, because bubblewrap itself needs one process more.
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
    """Return arguments of `Popen` that select a user without rights if this process is root's.

    The kernel does not limit the number of root's processes.
    """
    return {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}


def _denials() -> bytes:
    """Return the program for the kernel's seccomp that denies system calls whose memory has no limit.

    Named shared memory and message queues belong to no process (RLIMIT_AS) and to no file system.
    """
    load, if_equal, if_least, end = 0x20, 0x15, 0x35, 0x06
    kill, deny, allow = 0x80000000, 0x00050001, 0x7FFF0000  # deny: the call fails with EPERM
    architecture, calls = _ARCHITECTURES[platform.machine()]
    steps = [
        *((load, 0, 0, 4), (if_equal, 1, 0, architecture), (end, 0, 0, kill)),
        # The kernel also accepts the calls of 32-bit programs and of x32, which have other numbers.
        *((load, 0, 0, 0), (if_least, 0, 1, 0x40000000), (end, 0, 0, kill)),
        *(step for call in calls for step in ((if_equal, 0, 1, call), (end, 0, 0, deny))),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


@contextmanager
def _wait_for_all() -> Iterator[int]:
    """Yield a file for a process to inherit. At the end, wait until that process and its children are dead.

    The kernel kills the processes in a sandbox only some time after the sandbox has ended.
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
    """Yield a file in memory. A file on disk could be incomplete, and a right answer would then count as wrong."""
    with os.fdopen(os.memfd_create("sandbox"), "w+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()
