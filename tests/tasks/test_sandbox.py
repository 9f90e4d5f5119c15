"""Programs that attack their machine are contained. Each is run for real where bubblewrap and g++ are installed."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.benchmarks.longproc import programs
from helm_longctx.benchmarks.longproc.programs import HEADER, check_programs, compile_program
from helm_longctx.errors import InputError
from helm_longctx.sandbox import (
    BUBBLEWRAP,
    MOST_FILES,
    MOST_MEMORY,
    MOST_OUTPUT,
    PROGRAM,
    SETTING,
    Outcome,
    check_sandbox,
    run,
)
from tests.sandboxes import require_sandbox

INCLUDES = "".join(
    f"#include <{name}>\n"
    for name in (
        *("fcntl.h", "unistd.h", "errno.h", "signal.h", "pthread.h", "sched.h", "netinet/in.h", "arpa/inet.h"),
        *("sys/socket.h", "sys/un.h", "sys/ipc.h", "sys/shm.h", "sys/sem.h", "sys/msg.h", "sys/mman.h", "sys/mount.h"),
        *("sys/ptrace.h", "sys/syscall.h", "sys/wait.h"),
    )
)
MEBIBYTE = 1 << 20


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may be run; the test is left out where they cannot be."""
    require_sandbox(monkeypatch)


def attack(code: str, seconds: float = 20) -> Outcome:
    """Compile a program and run it."""
    program = compile_program(f"{INCLUDES}{HEADER}int main() {{ {code} }}")
    assert program is not None
    return run([PROGRAM], program=program, seconds=seconds)


def numbers(outcome: Outcome) -> list[int]:
    assert outcome.code == 0, outcome
    return [int(word) for word in outcome.output.split()]


def test_it_has_to_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting nothing is run, and an unknown sandbox is none."""
    monkeypatch.delenv(SETTING, raising=False)
    with pytest.raises(InputError, match=f"^programs run only if you allow it: set {SETTING}=bubblewrap"):
        check_sandbox("programs run")
    monkeypatch.setenv(SETTING, "docker")
    with pytest.raises(InputError, match=f"^{SETTING}='docker' is not allowed; allowed: bubblewrap$"):
        check_sandbox("programs run")


def test_a_machine_without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names what is needed."""
    monkeypatch.setenv(SETTING, BUBBLEWRAP)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"needs Linux on x86_64 or aarch64 with the commands bwrap \(bubblewrap 0.8"):
        check_sandbox("programs run")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files in memory exist on Linux only")
def test_a_sandbox_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is an error and never the outcome of a program: kernels and containers can forbid namespaces."""
    for name in ("bwrap", "prlimit"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'bwrap: no permission for a namespace' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tmp_path.chmod(0o755)
    monkeypatch.setattr("helm_longctx.sandbox._user_arguments", dict)  # the folder above is root's alone
    with pytest.raises(InputError, match="starts no sandbox here: 'bwrap: no permission for a namespace'"):
        run(["true"], seconds=20)


def test_outcomes(sandbox: None) -> None:
    """Output, errors and exit status are the program's; a signal is told by a number."""
    found = run(["sh", "-c", "cat; echo wrong >&2; exit 7"], stdin=b"in\xff\n", seconds=20, processes=8)
    assert found == Outcome(b"in\xff\n", b"wrong\n", 7)
    assert attack("abort();").code == 128 + 6


def test_fork_bomb(sandbox: None) -> None:
    """No process and no thread is started."""
    forks = """
        int started = 0;
        for (int i = 0; i < 20000; i++) { pid_t child = fork(); if (!child) pause(); started += child > 0; }
        pthread_t thread;
        for (int i = 0; i < 100; i++)
            started += !pthread_create(&thread, 0, [](void *) -> void * { pause(); return 0; }, 0);
        cout << started;
    """
    assert numbers(attack(forks)) == [0]


def test_network(sandbox: None) -> None:
    """Neither this machine nor another one can be reached, also not by the abstract names of Unix sockets."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(b"\0helm-longctx-test")
        unix.listen()
        tcp.settimeout(0.2)
        code = f"""
            int reached = 0;
            for (const char *host : {{"127.0.0.1", "192.0.2.1", "1.1.1.1"}}) {{
                int s = socket(AF_INET, SOCK_STREAM, 0);
                sockaddr_in to = {{}};
                to.sin_family = AF_INET; to.sin_port = htons({tcp.getsockname()[1]}); inet_pton(AF_INET, host, &to.sin_addr);
                reached += !connect(s, (sockaddr *)&to, sizeof to);
            }}
            sockaddr_un to = {{}};
            to.sun_family = AF_UNIX; memcpy(to.sun_path, "\\0helm-longctx-test", 18);
            reached += !connect(socket(AF_UNIX, SOCK_STREAM, 0), (sockaddr *)&to, offsetof(sockaddr_un, sun_path) + 18);
            cout << reached;
        """
        assert numbers(attack(code)) == [0]
        with pytest.raises(TimeoutError):
            tcp.accept()


def test_files_of_the_machine(sandbox: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outside /tmp can be written; files of users, passwords and variables are not there."""
    secret = tmp_path / "secret"
    secret.write_text("kept")
    monkeypatch.setenv("TOKEN", "kept")
    paths = ["/x", "/usr/x", "/usr/bin/x", "/etc/x", "/dev/x", "/dev/shm/x", "/proc/sys/kernel/core_pattern", PROGRAM]
    code = f"""
        int written = 0, seen = getenv("TOKEN") != 0;
        for (const char *path : {{{", ".join(f'"{path}"' for path in [*paths, str(secret), str(tmp_path / "new")])}}})
            written += open(path, O_WRONLY | O_CREAT, 0666) >= 0;
        for (const char *path : {{"{secret}", "/etc/passwd", "/root", "/home", "/var", "/proc/1/root/etc/passwd"}})
            seen += open(path, O_RDONLY) >= 0;
        written += !mount("none", "/tmp", "tmpfs", 0, 0) + !unshare(CLONE_NEWUSER) + !chroot("/tmp");
        cout << written << " " << seen << " " << (open("/tmp/x", O_WRONLY | O_CREAT, 0666) >= 0);
    """
    assert numbers(attack(code)) == [0, 0, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert secret.read_text() == "kept"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output(sandbox: None, stream: str) -> None:
    """The program ends when it has written its share."""
    found = attack(f'string line(1 << 20, "x"[0]); while (true) fputs(line.c_str(), {stream});')
    assert found.code == 128 + 25  # SIGXFSZ
    assert len(found.output + found.errors) == MOST_OUTPUT


def test_memory_hog(sandbox: None) -> None:
    """Memory, however a program gets it, has a limit."""
    code = """
        long taken = 0, shared = 0;
        while (void *block = malloc(1 << 20)) { memset(block, 1, 1 << 20); taken++; }
        for (int i = 0; i < 100; i++)
            shared += (shmget(IPC_PRIVATE, 1 << 20, 0600) >= 0) + (semget(IPC_PRIVATE, 9, 0600) >= 0)
                    + (msgget(IPC_PRIVATE, 0600) >= 0) + (syscall(SYS_memfd_create, "x", 0) >= 0);
        printf("%ld %ld", taken, shared);
    """
    taken, shared = numbers(attack(code))
    assert MOST_MEMORY / MEBIBYTE * 0.9 < taken < MOST_MEMORY / MEBIBYTE
    assert shared == 0


def test_full_folder(sandbox: None) -> None:
    """/tmp has room for little, and is gone afterwards."""
    code = """
        signal(SIGXFSZ, SIG_IGN);
        long written = 0;
        static char block[1 << 20];
        for (int i = 0; i < 20; i++) {
            int file = open(("/tmp/" + to_string(i)).c_str(), O_WRONLY | O_CREAT, 0600);
            while (write(file, block, sizeof block) == sizeof block) written++;
        }
        cout << written;
    """
    (written,) = numbers(attack(code))
    assert MOST_FILES / MEBIBYTE * 0.9 < written <= MOST_FILES / MEBIBYTE
    assert run(["ls", "-A", "/tmp"], seconds=20).output == b""


def test_calls_by_other_numbers(sandbox: None) -> None:
    """The calls of 32-bit programs, by which a denied one could be made, end the program."""
    found = attack("""
        #if defined(__x86_64__)
        asm volatile("int $0x80" : : "a"(395), "b"(0), "c"(4096), "d"(0600));
        #else
        syscall(0x40000000);
        #endif
    """)
    assert found.code == 128 + 31  # SIGSYS


def test_endless_loops(sandbox: None) -> None:
    """A program that does not end is killed with all that it holds, whatever it ignores."""
    mark = f"helm-longctx-{os.getpid()}"
    found = run(["sh", "-c", f"trap '' TERM INT HUP; echo begun; while :; do :; done; : {mark}"], seconds=0.5)
    assert found == Outcome(b"begun\n", b"", None)
    assert not list(processes(mark))


def processes(mark: str) -> Iterator[int]:
    """The processes of this machine with a mark in their command."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_text(errors="replace"):
                yield int(path.parent.name)
        except OSError:  # it has ended
            continue


def test_attacks_on_the_compiler(sandbox: None, tmp_path: Path) -> None:
    """The compiler reads and writes no file of the machine, and what it cannot finish does not compile."""
    (tmp_path / "secret").write_text("int main() {}")
    assert compile_program(f'#include "{tmp_path}/secret"') is None
    assert compile_program('#include "/etc/passwd"\nint main() {}') is None
    assert compile_program("char big[1u << 30] = {1}; int main() {}") is None
    assert compile_program("int main() {}") is not None


def test_programs_need_a_compiler(sandbox: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the compiler makes no program out of the smallest one, there is none."""
    monkeypatch.setattr(programs, "_COMPILE", "no-compiler")
    monkeypatch.setattr(programs, "_try_compiler", programs._try_compiler.__wrapped__)  # without its memory
    with pytest.raises(InputError, match=r"needs g\+\+, installed in /usr"):
        check_programs()
