"""Programs that attack their machine are contained. Each is run for real where bubblewrap and g++ are installed."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helm_longctx.benchmarks.longproc import tasks
from helm_longctx.benchmarks.longproc.tasks import check_programs, compile_program
from helm_longctx.errors import InputError
from helm_longctx.run_settings import SANDBOX
from helm_longctx.tasks import interpreter
from helm_longctx.tasks.interpreter import TOTAL_SECONDS
from helm_longctx.tasks.sandbox import (
    BUBBLEWRAP,
    DENIED_CALLS,
    LIMITED_CALLS,
    MOST_FILES,
    MOST_MEMORY,
    MOST_OPEN_FILES,
    MOST_OUTPUT,
    PROGRAM,
    ProgramResult,
    check_sandbox,
    run,
)
from tests.support.attacks import Attack, attack_as_program, attack_in_interpreter
from tests.support.sandboxes import require_sandbox

MEBIBYTE = 1 << 20

ABORT = "abort();"
FLOOD = 'string line(1 << 20, "x"[0]); while (true) fputs(line.c_str(), stdout);'
OTHER_NUMBERS = """
    #if defined(__x86_64__)
    asm volatile("int $0x80" : : "a"(395), "b"(0), "c"(4096), "d"(0600));
    #else
    syscall(0x40000000);
    #endif
"""
OUTLIVE = "prctl(PR_SET_PDEATHSIG, 0); cout << kill(1, SIGKILL) << endl; while (true);"


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may be run; the test is left out where they cannot be."""
    require_sandbox(monkeypatch)


@pytest.fixture(
    params=[attack_as_program, attack_in_interpreter], ids=["program", "interpreter"]
)
def attack(sandbox: None, request: pytest.FixtureRequest) -> Attack:
    """Run an attack in C++ as a program, and as what the interpreter becomes."""
    chosen: Attack = request.param
    return chosen


def numbers(outcome: ProgramResult) -> list[int]:
    assert outcome.code == 0, outcome
    return [int(word) for word in outcome.output.split()]


def test_it_has_to_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting nothing is run, and an unknown sandbox is none."""
    monkeypatch.delenv(SANDBOX, raising=False)
    with pytest.raises(
        InputError,
        match=f"^programs run only if you allow it: set {SANDBOX}=bubblewrap",
    ):
        check_sandbox("programs run")
    monkeypatch.setenv(SANDBOX, "docker")
    with pytest.raises(
        InputError, match=f"^{SANDBOX}='docker' is invalid; give bubblewrap$"
    ):
        check_sandbox("programs run")


def test_a_machine_without_bubblewrap(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error names what is needed."""
    monkeypatch.setenv(SANDBOX, BUBBLEWRAP)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        InputError,
        match=r"needs Linux on x86_64 or aarch64 with the commands bwrap \(bubblewrap 0.8",
    ):
        check_sandbox("programs run")


@pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="files in memory exist on Linux only"
)
def test_a_sandbox_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A sandbox that does not start is an error, and never the outcome of a program; kernels and containers can forbid namespaces."""
    for name in ("bwrap", "prlimit"):
        (tmp_path / name).write_text(
            "#!/bin/sh\necho 'bwrap: no permission for a namespace' >&2\nexit 1\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tmp_path.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 1)  # the folder above is root's alone
    with pytest.raises(
        InputError,
        match="starts no sandbox here: 'bwrap: no permission for a namespace'",
    ):
        run(["true"], seconds=20)


def test_outcomes(sandbox: None) -> None:
    """Output, errors and exit status are the program's; a signal is told by a number."""
    result = run(
        ["sh", "-c", "cat; echo wrong >&2; exit 7"],
        stdin=b"in\xff\n",
        seconds=20,
        processes=8,
    )
    assert result == ProgramResult(b"in\xff\n", b"wrong\n", 7)
    assert attack_as_program(ABORT).code == 128 + 6
    for number in (
        signal.SIGTERM,
        signal.SIGKILL,
        signal.SIGALRM,
        signal.SIGXFSZ,
    ):  # PID 1 would ignore them
        assert (
            run(["sh", "-c", f"kill -{int(number)} $$"], seconds=20).code
            == 128 + number
        )


def test_fork_bomb(attack: Attack) -> None:
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


def test_environment(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program finds no variable of ours in /proc. It can read nothing there about another process."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-ours")
    code = """
        int others = 0;
        DIR *folder = opendir("/proc");
        while (dirent *entry = readdir(folder)) {
            int pid = atoi(entry->d_name);
            if (pid == 0 || pid == getpid()) continue;
            for (const char *name : {"environ", "cmdline", "fd", "mem", "maps", "root", "cwd", "status", "task/1/environ"})
                others += open(("/proc/" + to_string(pid) + "/" + name).c_str(), O_RDONLY) >= 0;
        }
        cout << others << " " << ifstream("/proc/1/environ").rdbuf();
    """
    assert attack(code).output == b"0 "
    own = run(["cat", "/proc/self/environ"], seconds=20).output
    assert own == b"PATH=/usr/bin:/bin\0PWD=/tmp\0"


def test_environment_outside(sandbox: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs of the machine find no variable of ours in the processes of the sandbox, bubblewrap included."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-ours")
    mark = f"helm-longctx-{os.getpid()}-outside"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(
            run, ["sh", "-c", f"sleep 0.5; : {mark}"], seconds=20, processes=8
        )
        seen: set[str] = set()
        while not running.done():
            seen |= {read(process / "environ") for process in processes(mark)}
            time.sleep(0.01)
    assert "PATH=/usr/bin:/bin\0PWD=/tmp\0" in seen
    assert not any("key-of-ours" in text for text in seen)


def test_other_processes(attack: Attack) -> None:
    """A program cannot make bubblewrap's process, which may start others, do so or take memory for it."""
    code = """
        int attached = !ptrace(PTRACE_ATTACH, 1, 0, 0), forks = 0, mapped = 0;
        #if defined(__x86_64__)
        if (attached) {
            waitpid(1, 0, __WALL);
            user_regs_struct before = {}, now;
            ptrace(PTRACE_GETREGS, 1, 0, &before);
            auto call = [&](long number, long first, long second, long third, long fourth, long fifth) {
                now = before;  // it waits in a system call, so its last instruction is one
                now.rip -= 2; now.orig_rax = -1; now.rax = number;
                now.rdi = first; now.rsi = second; now.rdx = third; now.r10 = fourth; now.r8 = fifth;
                ptrace(PTRACE_SETREGS, 1, 0, &now);
                ptrace(PTRACE_SINGLESTEP, 1, 0, 0);
                waitpid(1, 0, __WALL);
                ptrace(PTRACE_GETREGS, 1, 0, &now);
                return (long)now.rax;
            };
            for (int i = 0; i < 8; i++) forks += call(SYS_fork, 0, 0, 0, 0, 0) > 0;
            mapped = call(SYS_mmap, 0, 4000L << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1) > 0;
        }
        #endif
        char byte; iovec here = {&byte, 1}, there = {(void *)environ, 1};
        int reached = (process_vm_readv(1, &here, 1, &there, 1, 0) >= 0 || errno != EPERM)
            + (process_vm_writev(1, &here, 1, &there, 1, 0) >= 0 || errno != EPERM)
            + (open("/proc/1/mem", O_RDWR) >= 0) + (syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, 1, 0), 0, 0) >= 0);
        cout << attached << " " << forks << " " << mapped << " " << reached;
    """
    assert numbers(attack(code)) == [0, 0, 0, 0]


def test_limits_of_all_processes(attack: Attack) -> None:
    """bubblewrap's process in the sandbox has the limits too."""
    code = """
        for (auto which : {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_CPU}) {
            rlimit limit;
            prlimit(1, which, 0, &limit);
            cout << limit.rlim_max << " ";
        }
    """
    *limits, seconds = numbers(attack(code))
    assert limits == [MOST_MEMORY, MOST_OUTPUT, MOST_OPEN_FILES, 0]
    assert seconds in (21, TOTAL_SECONDS + 1)


def test_denied_calls(attack: Attack) -> None:
    """Each denied call fails, by the number that the kernel's headers give for this machine."""
    code = "".join(
        f"""
        #ifdef SYS_{name}
        if (syscall(SYS_{name}, 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM) cout << "{name} ";
        #endif
        """
        for name in DENIED_CALLS
    )
    assert attack(f'{code} cout << "end";').output == b"end"


def test_numbers_of_calls() -> None:
    """The numbers for aarch64 are those of the kernel's headers, as far as these have the calls."""
    header = Path("/usr/include/asm-generic/unistd.h")
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    pairs = re.findall(
        r"^#define __NR(?:3264)?_(\w+) (\d+)$", header.read_text(), flags=re.MULTILINE
    )
    calls = {
        name: number
        for name, (_, number) in [*DENIED_CALLS.items(), *LIMITED_CALLS.items()]
    }
    expected = {name: int(number) for name, number in pairs if name in calls}
    assert "ptrace" in expected
    assert {name: calls[name] for name in expected} == expected


def test_families_of_sockets(attack: Attack) -> None:
    """Only the sockets of Unix and IPv4 exist. IPv6, packets, the kernel and a hypervisor have none."""
    code = """
        for (int family = 0; family < 64; family++)
            for (int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
                int pair[2];
                if (socket(family, type, 0) >= 0 || !socketpair(family, type, 0, pair)) { cout << family << " "; break; }
            }
    """
    assert numbers(attack(code)) == [socket.AF_UNIX, socket.AF_INET]


def test_keys_and_queues(attack: Attack) -> None:
    """A program reaches no keyring of the user, and gets no queue for requests to the kernel."""
    code = """
        char parameters[120] = {};  // struct io_uring_params
        int reached = syscall(SYS_add_key, "user", "name", "value", 5, -2) >= 0;  // KEY_SPEC_PROCESS_KEYRING
        reached += syscall(SYS_request_key, "user", "name", 0, -2) >= 0;
        reached += syscall(SYS_keyctl, 1, 0) >= 0;  // KEYCTL_JOIN_SESSION_KEYRING
        reached += syscall(SYS_io_uring_setup, 8, parameters) >= 0;
        cout << reached;
    """
    assert numbers(attack(code)) == [0]


def test_network(attack: Attack) -> None:
    """Neither this machine nor another one can be reached, also not by the abstract names of Unix sockets."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
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


def test_files_of_the_machine(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing outside /tmp can be written; files of users, passwords and variables are not there."""
    secret = tmp_path / "secret"
    secret.write_text("kept")
    monkeypatch.setenv("TOKEN", "kept")
    paths = [
        "/x",
        "/usr/x",
        "/usr/bin/x",
        "/etc/x",
        "/dev/x",
        "/dev/shm/x",
        "/proc/sys/kernel/core_pattern",
        PROGRAM,
    ]
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
    outcome = attack_as_program(FLOOD.replace("stdout", stream))
    assert outcome.code == 128 + 25  # SIGXFSZ
    assert len(outcome.output + outcome.errors) == MOST_OUTPUT


def test_memory_hog(attack: Attack) -> None:
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


def test_memory_of_the_kernel(attack: Attack) -> None:
    """Pipes cannot grow, and nothing keeps data that no process owns: pages in pipes, unread connections, events."""
    code = """
        long pipes = 0, pages = 0, listeners = 0, watches = 0;
        int ends[2];
        void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        iovec one = {page, 4096};
        while (!pipe(ends)) {
            pipes += fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) == 1 << 20;
            pages += vmsplice(ends[1], &one, 1, 0) > 0;
            close(ends[0]);
        }
        for (int file = 3; file < 60; file++) close(file);
        watches += inotify_init() >= 0;
        sockaddr_un name = {AF_UNIX, "/tmp/socket"};
        int unix_socket = socket(AF_UNIX, SOCK_STREAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
        listeners += !bind(unix_socket, (sockaddr *)&name, sizeof name) && !listen(unix_socket, 4096);
        listeners += !listen(tcp, 4096);
        cout << pipes << " " << pages << " " << listeners << " " << watches;
    """
    assert numbers(attack(code)) == [0, 0, 0, 0]


def test_full_folder(attack: Attack) -> None:
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
    outcome = attack_as_program(OTHER_NUMBERS)
    assert outcome.code == 128 + 31  # SIGSYS


def test_endless_loops(sandbox: None) -> None:
    """A program that does not end is killed with all that it holds, whatever it ignores."""
    mark = f"helm-longctx-{os.getpid()}"
    result = run(
        [
            "sh",
            "-c",
            f"trap '' TERM INT HUP; echo begun; while :; do :; done; : {mark}",
        ],
        seconds=0.5,
    )
    assert result == ProgramResult(b"begun\n", b"", None)
    assert not list(processes(mark))


def test_programs_that_outlive_their_parent(sandbox: None) -> None:
    """A program ends with the sandbox even if it refuses to end with its parent, which is bubblewrap."""
    outcome = attack_as_program(OUTLIVE, seconds=0.5)
    assert outcome == ProgramResult(b"0\n", b"", None)


@pytest.mark.parametrize(
    "code",
    [ABORT, FLOOD, OTHER_NUMBERS, OUTLIVE],
    ids=["abort", "flood", "numbers", "outlive"],
)
def test_programs_that_end_the_interpreter(
    sandbox: None, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends a program ends the interpreter, with an error; the next piece of code gets a new one."""
    monkeypatch.setattr(interpreter, "_MOST_SECONDS", 2.0)
    assert attack_in_interpreter(code) == ProgramResult(b"", b"", None)


def processes(mark: str) -> Iterator[Path]:
    """The folders of the processes of this machine with a mark in their command."""
    for path in Path("/proc").glob("[0-9]*"):
        if mark in read(path / "cmdline"):
            yield path


def read(path: Path) -> str:
    """The text of a file; none if its process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_attacks_on_the_compiler(sandbox: None, tmp_path: Path) -> None:
    """The compiler reads and writes no file of the machine, and what it cannot finish does not compile."""
    (tmp_path / "secret").write_text("int main() {}")
    assert compile_program(f'#include "{tmp_path}/secret"') is None
    assert compile_program('#include "/etc/passwd"\nint main() {}') is None
    assert compile_program("char big[1u << 30] = {1}; int main() {}") is None
    assert compile_program("int main() {}") is not None


def test_programs_need_a_compiler(
    sandbox: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the compiler makes no program out of the smallest one, there is none."""
    monkeypatch.setattr(tasks, "_COMPILE", "no-compiler")
    monkeypatch.setattr(
        tasks, "_try_compiler", tasks._try_compiler.__wrapped__
    )  # without its memory
    with pytest.raises(InputError, match=r"needs g\+\+, installed in /usr"):
        check_programs()
