"""Runs code that attacks its machine, in C++ and in Python, as a program in the sandbox and in the interpreter."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache

from helm_longctx.benchmarks.longproc.tasks import compile_program
from helm_longctx.tasks.interpreter import PYTHON, Interpreter
from helm_longctx.tasks.sandbox import PROGRAM, ProgramResult, run

Attack = Callable[[str], ProgramResult]
"""(code of an attack) → how it ended."""

INCLUDES = "".join(
    f"#include <{name}>\n"
    for name in (
        *(
            "fcntl.h",
            "unistd.h",
            "errno.h",
            "signal.h",
            "pthread.h",
            "sched.h",
            "netinet/in.h",
            "arpa/inet.h",
        ),
        *(
            "sys/socket.h",
            "sys/un.h",
            "sys/ipc.h",
            "sys/shm.h",
            "sys/sem.h",
            "sys/msg.h",
            "sys/mman.h",
            "sys/mount.h",
        ),
        *(
            "sys/ptrace.h",
            "sys/syscall.h",
            "sys/wait.h",
            "sys/prctl.h",
            "sys/resource.h",
            "sys/uio.h",
            "sys/user.h",
        ),
        "dirent.h",
        "sys/inotify.h",
        "sys/stat.h",
        "cstring",
        "fstream",
        "iostream",
        "string",
    )
)
BECOME = """
import base64, os
with open("/tmp/attack", "wb") as file:
    file.write(base64.b64decode(program))
os.chmod("/tmp/attack", 0o700)
os.execv("/tmp/attack", ["attack", "answer"])
"""
"""Code with which the interpreter becomes a compiled program, which is told to write an answer."""

MAIN = r"""
using namespace std;
int main(int words, char **) {
    bool answers = words > 1;
    if (answers) cout << "{\"text\": \"";
    {
        CODE
    }
    if (answers) {
        cout.clear();
        cout << "\"}\n" << flush;
    }
}
"""
"""Runs the code of an attack. With an argument, its output is what the interpreter writes as an answer: a line of JSON."""


def attack_as_program(code: str, seconds: float = 20) -> ProgramResult:
    """Run the body of `main` in C++ as the program of a sandbox."""
    return run([PROGRAM], program=_compile(code), seconds=seconds)


def attack_in_interpreter(code: str) -> ProgramResult:
    """Run the body of `main` in C++ by code of the interpreter, which must be usable afterwards.

    The exit status is 0 if the program wrote an answer, and else None.
    """
    program = base64.b64encode(_compile(code)).decode()
    with Interpreter({"program": program}, {}) as interpreter:
        result = interpreter.run(BECOME)
        interpreter.run(
            ""
        )  # gets the error that the interpreter has ended, if the program's answer hid it
        assert interpreter.run("print(6 * 7)").text == "42\n"
    return ProgramResult(result.text.encode(), b"", None if result.error else 0)


# Each attack is made in both ways, one after the other.
@cache
def _compile(code: str) -> bytes:
    program = compile_program(f"{INCLUDES}{MAIN.replace('CODE', code)}")
    assert program is not None
    return program


def python_as_program(code: str) -> ProgramResult:
    """Run Python code as the program of a sandbox."""
    return run([PYTHON, "-I", "-S", "-c", code], seconds=20)


def python_in_interpreter(code: str) -> ProgramResult:
    """Run Python code in the interpreter, which must be usable afterwards, with its variables."""
    with Interpreter(
        {"context": "abc"}, {"upper": lambda text: text.upper()}
    ) as interpreter:
        interpreter.run("x = 7")
        result = interpreter.run(code)
        assert interpreter.run("print(upper(context), 6 * x)").text == "ABC 42\n"
    return ProgramResult(
        result.text.encode(), result.error.encode(), int(bool(result.error))
    )
