"""Runs programs that nobody has checked, such as those that models write, in a sandbox of bubblewrap.

Of the machine's files, a program can only read those in /usr. It has an empty /tmp in memory, sees only its own
processes, and has no network and no environment variable of ours. Its time, memory, processes and output are limited.
None of this needs administrator's rights. If we have them, the program runs without them.
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
"""Path, in the sandbox, of the executable that `run` gets."""

MOST_MEMORY = 1 << 30
"""Limit on the address space of each process, in bytes."""
MOST_OUTPUT = 64 << 20
"""Limit on the output, on the error output, and on each file, in bytes."""
MOST_FILES = 256 << 20
"""Limit on all files in /tmp together, in bytes."""
MOST_OPEN_FILES = 64

_FOLDER = "/tmp"  # noqa: S108  # a folder of the sandbox

_ARCHITECTURES = {"x86_64": (0xC000003E, (29, 64, 68, 319)), "aarch64": (0xC00000B7, (194, 190, 186, 279))}
"""By machine, the kernel's constant `AUDIT_ARCH_*`, and the numbers of shmget, semget, msgget and memfd_create."""

_SLOTS = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Only as many programs run at a time as there are processors. More would exceed their time limits."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program.

    Args:
        output, errors: its standard output and error output, at most `MOST_OUTPUT` bytes each.
        code: its exit status; 128 plus the signal's number if a signal ended it; None if it exceeded its time limit.
    """

    output: bytes
    errors: bytes
    code: int | None


def check_sandbox(purpose: str) -> None:
    """Check that the user allows programs to be run, and that the sandbox works.

    Args:
        purpose: says what is run; the error starts with it.

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
    command: Sequence[str], *, seconds: float, stdin: bytes = b"", program: bytes = b"", processes: int = 1
) -> Outcome:
    """Run a command in a sandbox of its own and wait until it ends. Callers call `check_sandbox` first.

    Args:
        command: the command with its arguments. Only programs in /usr and `PROGRAM` exist.
        seconds: the time limit, in wall-clock seconds. After it, all processes are killed.
        stdin: the standard input.
        program: the content of the executable `PROGRAM`.
        processes: limit on processes and threads, including the command's own.

    Raises:
        InputError: the sandbox cannot be started.
    """
    with _SLOTS, ExitStack() as stack:
        contents = (program, _seccomp_filter(), b"", b"", b"")
        executable, denials, output, errors, status = (stack.enter_context(_memory_file(each)) for each in contents)
        inherited = [*(file.fileno() for file in (executable, denials, status)), stack.enter_context(_wait_for_all())]
        process = subprocess.Popen(
            [*_bwrap_command(executable, denials, status), *_prlimit_command(seconds, processes), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            pass_fds=inherited,
            cwd="/",
            **_user_arguments(),
        )
        is_finished = _finish(process, stdin, seconds)
        # bubblewrap writes an exit status only if it has started the command.
        if is_finished and b'"exit-code"' not in _read_all(status):
            reason = _read_all(errors).decode(errors="replace").strip()
            raise InputError(f"bubblewrap (0.8 or newer) starts no sandbox here: {shorten(reason)}")
        return Outcome(_read_all(output), _read_all(errors), process.returncode if is_finished else None)


def _finish(process: subprocess.Popen[bytes], stdin: bytes, seconds: float) -> bool:
    """Give a process its input and wait until it ends. Kill it after the time limit, and then return False."""
    with process:
        try:
            process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            # The sandbox dies with bubblewrap (--die-with-parent). This also runs if we are interrupted.
            process.kill()
    return True


def _bwrap_command(executable: BinaryIO, denials: BinaryIO, status: BinaryIO) -> list[str]:
    """Return the command line of bubblewrap. The command that it runs follows."""
    return [
        *("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--seccomp", str(denials.fileno())),
        *("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
        # /dev and / are file systems in memory without a limit, so they are mounted again, read-only.
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--size", str(MOST_FILES), "--tmpfs", _FOLDER),
        *("--perms", "0555", "--ro-bind-data", str(executable.fileno()), PROGRAM, "--remount-ro", "/"),
        *("--chdir", _FOLDER, "--json-status-fd", str(status.fileno()), "--"),
    ]


def _prlimit_command(seconds: float, processes: int) -> list[str]:
    """Return the command line of prlimit, which sets the kernel's limits. The command that it runs follows."""
    # The limits are set in the sandbox, because bubblewrap itself needs one more process.
    limits = {
        "as": MOST_MEMORY,
        "fsize": MOST_OUTPUT,
        "nofile": MOST_OPEN_FILES,
        "nproc": processes,
        "cpu": int(seconds) + 1,
        "core": 0,
    }
    return ["prlimit", *(f"--{name}={value}" for name, value in limits.items()), "--"]


def _user_arguments() -> dict[str, Any]:
    """Return the arguments with which `Popen` uses another user instead of root, who has no limit on processes."""
    return {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}


def _seccomp_filter() -> bytes:
    """Return the filter for the kernel's seccomp that denies the system calls whose memory has no limit.

    Shared memory, semaphores and message queues count neither for a process (RLIMIT_AS) nor for a file system.
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
    """Make an open file that a process inherits. At the end, wait until the process and all its children are dead.

    The kernel kills the other processes of a sandbox a short time after its first one.
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
    """Make a file in memory. On a full disk, a right answer could get a wrong score."""
    with os.fdopen(os.memfd_create("sandbox"), "w+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _read_all(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()
