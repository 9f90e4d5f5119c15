"""Runs programs that nobody has checked, such as those that models write, in a sandbox of bubblewrap.

Of the machine's files, a program can only read those in /usr. It has an empty /tmp in memory, sees only its own
processes, and has no network and no environment variable of ours. Its time, memory, processes and output are limited.
None of this needs administrator's rights. If we have them, the program runs without them.

bubblewrap itself is PID 1 in the sandbox. The kernel kills it, and all others with it, as soon as we kill its parent. A
program that is PID 1 itself (`--as-pid-1`) can switch this off with prctl and never end, and ignores signals that end
other programs. So bubblewrap stays PID 1, out of the program's reach: its environment is empty, its folder in /proc is
covered, and the system calls that reach into other processes are denied.
"""

import os
import platform
import select
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

from helm_longctx.errors import InputError, shorten
from helm_longctx.run_settings import SANDBOX, settings_in_use

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

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""By machine, the kernel's constant `AUDIT_ARCH_*` (include/uapi/linux/audit.h)."""

DENIED_CALLS: Mapping[str, tuple[int, int | None]] = {
    # These reach into another process.
    **{
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
    },
    **{"pidfd_getfd": (438, 438), "kcmp": (312, 272), "perf_event_open": (298, 241)},
    # These hold memory that counts neither for a process (RLIMIT_AS) nor for a file system.
    **{
        "shmget": (29, 194),
        "semget": (64, 190),
        "msgget": (68, 186),
        "mq_open": (240, 180),
    },
    **{
        "memfd_create": (319, 279),
        "memfd_secret": (447, 447),
        "vmsplice": (278, 75),
        "listen": (50, 201),
    },
    **{
        "inotify_init": (253, None),
        "inotify_init1": (294, 26),
        "fanotify_init": (300, 262),
    },
    # These hold keys of the user, or make the kernel easier to attack.
    **{
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
    },
    **{"bpf": (321, 280), "userfaultfd": (323, 282)},
    **{"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)},
}
"""System calls that fail, and their numbers on the machines of `_ARCHITECTURES`. aarch64 has no inotify_init.

Source: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux.
"""
LIMITED_CALLS: Mapping[str, tuple[int, int]] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "fcntl": (72, 25),
}
"""System calls that fail for some arguments, and their numbers."""
_FAMILIES = (
    1,
    2,
)  # AF_UNIX and AF_INET. Others reach the kernel (AF_NETLINK) or a virtual machine's host (AF_VSOCK).
_F_SETPIPE_SZ = 1031  # A pipe could get 16 times its usual memory.

_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_LEAST = 0x35
_END = 0x06  # instructions of BPF
_KILL = 0x80000000
_DENY = 0x00050001
_ALLOW = 0x7FFF0000  # _DENY: the call fails with EPERM

_SLOTS = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Only as many programs run at a time as there are processors. More would exceed their time limits."""


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended.

    Args:
        output, errors: its standard output and error output, at most `MOST_OUTPUT` bytes each.
        code: its exit status: 128 plus the signal's number if a signal ended it, None if it exceeded its time limit.
    """

    output: bytes
    errors: bytes
    code: int | None


def check_sandbox(purpose: str) -> None:
    """Raise an `InputError` if the user does not allow programs, or the sandbox does not work."""
    name = settings_in_use().sandbox
    if not name:
        raise InputError(
            f"{purpose} only if you allow it: set {SANDBOX}={BUBBLEWRAP}, which runs"
            " them in a sandbox"
        )
    if name != BUBBLEWRAP:
        raise InputError(f"{SANDBOX}={shorten(name)} is invalid; give {BUBBLEWRAP}")
    if platform.machine() not in _ARCHITECTURES or not (
        shutil.which("bwrap") and shutil.which("prlimit")
    ):
        raise InputError(
            f"{SANDBOX}={name} needs Linux on {' or '.join(_ARCHITECTURES)} with the"
            " commands bwrap (bubblewrap 0.8 or newer) and prlimit (util-linux)"
        )
    _try_sandbox()


@cache
def _try_sandbox() -> None:
    run(["true"], seconds=30)


def run(
    command: Sequence[str],
    *,
    seconds: float,
    stdin: bytes = b"",
    program: bytes = b"",
    processes: int = 1,
) -> ProgramResult:
    """Run a command in a sandbox of its own and wait until it ends, or raise an `InputError`.

    Callers call `check_sandbox` first.

    Args:
        command: the command with its arguments. Only programs in /usr and `PROGRAM` exist.
        seconds: the time limit, in wall-clock seconds. After it, all processes are killed.
        program: the content of the executable `PROGRAM`.
        processes: limit on processes and threads, including the command's own.
    """
    with _SLOTS, ExitStack() as stack:
        output = stack.enter_context(_memory_file(b""))
        process, errors, status = _start(
            stack, command, seconds, program, processes, output
        )
        is_finished = True
        with process:
            try:
                process.communicate(stdin, timeout=seconds)
            except subprocess.TimeoutExpired:
                is_finished = False
            finally:
                # The sandbox dies with bubblewrap (--die-with-parent). This also runs if we are interrupted.
                process.kill()
        # bubblewrap writes an exit status only if it has started the command.
        if is_finished and b'"exit-code"' not in _read_all(status):
            reason = _read_all(errors).decode(errors="replace").strip()
            raise InputError(
                f"bubblewrap (0.8 or newer) starts no sandbox here: {shorten(reason)}"
            )
        return ProgramResult(
            _read_all(output),
            _read_all(errors),
            process.returncode if is_finished else None,
        )


def _start(
    stack: ExitStack,
    command: Sequence[str],
    seconds: float,
    program: bytes,
    processes: int,
    output: BinaryIO | int,
) -> tuple[subprocess.Popen[bytes], BinaryIO, BinaryIO]:
    """Start a command in a sandbox. `stack` waits for its end. Return process, error output and report."""
    contents = (program, _seccomp_filter(), b"", b"")
    executable, denials, errors, status = (
        stack.enter_context(_memory_file(content)) for content in contents
    )
    inherited = [
        *(file.fileno() for file in (executable, denials, status)),
        stack.enter_context(_wait_for_all()),
    ]
    # prlimit limits each process that bubblewrap starts, and bubblewrap itself.
    limits = {
        "as": MOST_MEMORY,
        "fsize": MOST_OUTPUT,
        "nofile": MOST_OPEN_FILES,
        "cpu": int(seconds) + 1,
        "core": 0,
    }
    limit_command = [
        _find("prlimit"),
        *(f"--{name}={value}" for name, value in limits.items()),
        "--",
    ]
    # Root has no limit on processes, so it starts the command as another user.
    user: dict[str, Any] = {}
    if not os.geteuid():
        user = {"user": 65534, "group": 65534, "extra_groups": []}
    process = subprocess.Popen(
        [
            *limit_command,
            *_bwrap_command(executable, denials, status, processes),
            *command,
        ],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=errors,
        pass_fds=inherited,
        cwd="/",
        env={},
        **user,
    )
    return process, errors, status


class Dialogue:
    """A command in a sandbox with which lines are exchanged while it runs. Callers call `check_sandbox` first.

    The command is never trusted: it can write anything, or nothing. A line that it does not write in time, or that is
    too long, ends it.

    Args:
        command, program: as for `run`. The command has one process.
        seconds: the time limit of all its work, in seconds of processor time.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        seconds: float,
        program: bytes = b"",
    ):
        self._stack = ExitStack()
        self._rest = bytearray()
        self._process, _, _ = _start(
            self._stack, command, seconds, program, 1, subprocess.PIPE
        )
        assert self._process.stdin
        assert self._process.stdout
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        for file in (self._stdin, self._stdout):
            os.set_blocking(file.fileno(), False)

    def exchange(self, line: bytes, seconds: float) -> bytes | None:
        """Send a line, and return the command's next line within some seconds, or None if it has ended or is ended now."""
        with _SLOTS:
            answer = self._exchange(
                memoryview(line + b"\n"), time.monotonic() + seconds
            )
        if answer is None:
            self._process.kill()
        return answer

    def _exchange(self, left: memoryview, end: float) -> bytes | None:
        while (now := time.monotonic()) < end:
            readable, writable, _ = select.select(
                [self._stdout], [self._stdin] if left else [], [], end - now
            )
            if writable:
                try:
                    left = left[os.write(self._stdin.fileno(), left) :]
                except OSError:
                    return None
            if readable:
                piece = os.read(self._stdout.fileno(), 1 << 16)
                self._rest += piece
                if not piece or len(self._rest) > MOST_OUTPUT:
                    return None
                line, is_whole, rest = self._rest.partition(b"\n")
                if is_whole:
                    self._rest = rest
                    return bytes(line)
        return None

    def close(self) -> None:
        """End the command, and wait until all its processes are dead."""
        self._process.kill()
        with suppress(OSError):
            self._stdin.close()
        self._stdout.close()
        self._process.wait()
        self._stack.close()


def _bwrap_command(
    executable: BinaryIO,
    denials: BinaryIO,
    status: BinaryIO,
    processes: int,
) -> list[str]:
    """Return the command line of bubblewrap. The command that it runs follows."""
    # /dev and / are file systems in memory without a limit, so they are mounted again, read-only.
    remounts = ("--dev", "/dev", "--remount-ro", "/dev")
    program = str(executable.fileno())
    return [
        _find("bwrap"),
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        *("--setenv", "PATH", "/usr/bin:/bin"),
        *("--seccomp", str(denials.fileno())),
        *("--ro-bind", "/usr", "/usr"),
        *("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--symlink", "usr/bin", "/bin"),
        *("--symlink", "usr/lib", "/lib"),
        *("--symlink", "usr/lib64", "/lib64"),
        *("--proc", "/proc"),
        *("--perms", "0000", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"),
        *remounts,
        *("--size", str(MOST_FILES), "--tmpfs", _FOLDER),
        *("--perms", "0555", "--ro-bind-data", program, PROGRAM, "--remount-ro", "/"),
        *("--chdir", _FOLDER),
        *("--json-status-fd", str(status.fileno())),
        "--",
        # This limit holds for the program. bubblewrap itself would have to count all processes of the user.
        *("prlimit", f"--nproc={processes}", "--"),
    ]


def _find(name: str) -> str:
    """Return the path of a program, because `Popen` finds none without an environment."""
    return shutil.which(name) or name


_Step = tuple[int, int, int, int]
"""An instruction of BPF: its code, the steps to skip if it holds and if it does not, and its value."""


def _seccomp_filter() -> bytes:
    """Return the filter for the kernel's seccomp that denies `DENIED_CALLS` and some arguments of `LIMITED_CALLS`."""
    column = list(_ARCHITECTURES).index(platform.machine())
    machine = platform.machine()
    denied = [numbers[column] for numbers in DENIED_CALLS.values()]
    socket, socketpair, fcntl = (numbers[column] for numbers in LIMITED_CALLS.values())
    steps = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_END, 0, 0, _KILL),
        # The kernel also accepts the calls of 32-bit programs and of x32. They have other numbers.
        (_LOAD, 0, 0, 0),
        (_IF_LEAST, 0, 1, 0x40000000),
        (_END, 0, 0, _KILL),
    ]
    for number in denied:
        # An architecture may lack a call.
        if number is not None:
            steps += [(_IF_EQUAL, 0, 1, number), (_END, 0, 0, _DENY)]
    steps += [
        *_decide(socket, 0, _FAMILIES, then=_ALLOW, otherwise=_DENY),
        *_decide(socketpair, 0, _FAMILIES, then=_ALLOW, otherwise=_DENY),
        *_decide(fcntl, 1, [_F_SETPIPE_SZ], then=_DENY, otherwise=_ALLOW),
        (_END, 0, 0, _ALLOW),
    ]
    packed = []
    for code, if_true, if_false, value in steps:
        packed.append(struct.pack("=HBBI", code, if_true, if_false, value))
    return b"".join(packed)


def _decide(
    call: int,
    argument: int,
    values: Sequence[int],
    then: int,
    otherwise: int,
) -> list[_Step]:
    """Return the steps that end a call by one of its arguments, a C int. Other calls go on after them."""
    tests = []
    for index, value in enumerate(values):
        tests.append((_IF_EQUAL, len(values) - index, 0, value))
    steps = [
        (_LOAD, 0, 0, 16 + 8 * argument),
        *tests,
        (_END, 0, 0, otherwise),
        (_END, 0, 0, then),
    ]
    return [(_IF_EQUAL, 0, len(steps), call), *steps]


@contextmanager
def _wait_for_all() -> Iterator[int]:
    """Make an open file that a process inherits. At the end, wait until the process and all its children are dead."""
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
