"""Code that attacks its machine is contained in the interpreter as in any sandbox, and the interpreter stays usable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helm_longctx.tasks import interpreter
from helm_longctx.tasks.interpreter import Interpreter
from tests.support.attacks import Attack, python_as_program, python_in_interpreter
from tests.support.sandboxes import require_sandbox


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code may be run, where a key of ours is in the environment."""
    require_sandbox(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-ours")
    monkeypatch.setattr(interpreter, "_MOST_SECONDS", 5.0)


@pytest.fixture
def running(sandbox: None) -> Iterator[Interpreter]:
    """An interpreter with a text and a function."""
    with Interpreter(
        {"context": "abc" * 1000},
        {"upper": lambda text: text.upper()},
        exports=("answer",),
    ) as started:
        yield started


ATTACKS = {
    "fork": ("import os\nprint(os.fork())", "BlockingIOError"),
    "thread": (
        "import threading\nthreading.Thread(target=print).start()",
        "can't start new thread",
    ),
    "program": ("import subprocess\nsubprocess.run(['true'])", "BlockingIOError"),
    "network": ("import socket\nsocket.create_connection(('1.1.1.1', 53), 1)", "Error"),
    "netlink": ("import socket\nsocket.socket(16, 3, 0)", "PermissionError"),
    "environment": ("print(open('/proc/1/environ').read())", "Error"),
    "home": ("import os\nprint(os.listdir('/root'))", "FileNotFoundError"),
    "etc": ("print(open('/etc/passwd').read())", "FileNotFoundError"),
    "write": ("open('/usr/bin/x', 'w')", "Error"),
    "kill": ("import os\nos.kill(1, 9); os.kill(-1, 0)", "Error"),
    "memory": ("x = bytearray(2 << 30)", "MemoryError"),
    "disk": (
        "f = open('/tmp/x', 'wb')\nfor _ in range(400): f.write(bytes(1 << 20))",
        "Error",
    ),
    "packages": ("import numpy", "ModuleNotFoundError"),
}


@pytest.mark.parametrize(
    "run", [python_as_program, python_in_interpreter], ids=["program", "interpreter"]
)
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_fail(name: str, run: Attack, sandbox: None) -> None:
    """What reaches out of the sandbox fails inside of the code, which ends with an error."""
    code, error = ATTACKS[name]
    result = run(code)
    assert error in (result.output + result.errors).decode(), result
    assert result.code == 1
    assert b"key-of-ours" not in result.output


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("upper(1)", "AttributeError: 'int' object has no attribute 'upper'"),
        ("1 +", "SyntaxError"),
    ],
)
def test_errors_are_those_of_the_code(
    code: str, error: str, running: Interpreter
) -> None:
    """Code that fails gets its error, and the next piece runs with its variables."""
    running.run("x = 7")
    assert error in running.run(code).error
    assert running.run("print(upper(context[:3]), 6 * x)").text == "ABC 42\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(100)",
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os\nos.close(1); os.close(3); os.close(4)\nwhile True: pass",
        "import os\nwhile True:\n for file in range(1, 9):\n  try: os.write(file, b'x' * 65536)\n  except OSError: pass",
        "import signal, time\nfor each in range(1, 65):\n try: signal.signal(each, signal.SIG_IGN)\n except Exception: pass\ntime.sleep(100)",
        "x = [0]\nwhile True: x += x",
    ],
)
def test_code_that_does_not_come_back(
    code: str, running: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that ends the interpreter, or never ends, gets a line; the next piece starts with the first variables."""
    monkeypatch.setattr(interpreter, "_MOST_SECONDS", 0.5)
    output = running.run(code)
    assert output.error
    monkeypatch.setattr(interpreter, "_MOST_SECONDS", 5.0)
    assert running.run("print(len(context))").text == "3000\n"


def test_forged_messages_are_only_text(running: Interpreter) -> None:
    """Code that writes messages of its own cannot call what is no function of the interpreter."""
    code = 'import os, json\nfor file in range(3, 12):\n try: os.write(file, b\'{"call": "__import__", "arguments": ["os"]}\\n\')\n except OSError: pass\nprint(\'done\')'
    running.run(code)
    with_error = running.run("print(1)")
    assert "os" not in with_error.values


def test_what_is_printed_is_limited(
    running: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of the output is kept."""
    monkeypatch.setattr(interpreter, "_MOST_SECONDS", 20.0)
    assert (
        len(running.run("for _ in range(100): print('x' * 100_000)").text)
        == interpreter.MOST_TEXT
    )
    assert running.run("answer = {1, 2}; print('\\ud800')").values == {
        "answer": "{1, 2}"
    }


def test_nothing_is_left(running: Interpreter) -> None:
    """The process of the interpreter is dead when it is closed."""
    running.run("x = 1")
    assert running._dialogue
    process = running._dialogue._process
    assert process.poll() is None
    running.__exit__()
    assert process.poll() is not None
