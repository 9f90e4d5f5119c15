"""Starts installed programs in new processes that have their imports already.

A server process imports once what HELM's and our programs import, and forks a process for each program. This takes
milliseconds of processor time instead of seconds. Everything after the imports is as in the installed program: the
entry point's function, arguments, environment, folder, output, signals and exit status.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]

READ_AT_IMPORT = re.compile(
    "HOME|NLTK_DATA|(COVERAGE|HF_|HUGGINGFACE_|LD_|PYTHON(?!BREAKPOINT)|TRANSFORMERS_).*"
)
"""Variables that modules or the interpreter read when they start. A program with other values gets a new interpreter.

Ray sets PYTHONBREAKPOINT in the process of the tests."""

PARSER_BUG = "SystemError: AST constructor recursion depth mismatch"
"""Of CPython 3.11 (python/cpython issue 106905), seen now and then in other packages' imports under coverage."""


class Program:
    """A running program, with the methods of `subprocess.Popen` that tests need.

    Attributes:
        pid: the identifier of the process.
    """

    def __init__(self, process: ForkServerProcess):
        assert process.pid
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        """Return the exit status, minus the number of the signal that ended the program, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the program, and return its exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs after so many seconds.
        """
        self._process.join(timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("program", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the program, and those that it started, with SIGKILL."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)


def run(
    command: str,
    *arguments: object,
    folder: Path,
    prepare: Callable[[], object] | None = None,
    wait: Callable[[Program], object] = lambda program: program.wait(300),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run an installed program in a folder, and return its output as text.

    Args:
        prepare: function of a module that the process calls first.
        wait: waits for the end of the program.
        environment: variables besides those of this process.
    """
    line = [str(BIN / command), *map(str, arguments)]
    with TemporaryDirectory() as files:
        output = Path(files, "output")
        errors = Path(files, "errors")
        program = start(
            command,
            *arguments,
            folder=folder,
            output=output,
            errors=errors,
            prepare=prepare,
            **environment,
        )
        try:
            wait(program)
        finally:
            program.kill()
        status = program.wait()
        done = subprocess.CompletedProcess(
            line, status, output.read_text("utf-8"), errors.read_text("utf-8")
        )
    if PARSER_BUG in done.stderr:
        return run(
            command,
            *arguments,
            folder=folder,
            prepare=prepare,
            wait=wait,
            **environment,
        )
    return done


def start(
    command: str,
    *arguments: object,
    folder: Path,
    output: Path = Path(os.devnull),
    errors: Path | None = None,
    prepare: Callable[[], object] | None = None,
    **environment: str,
) -> Program:
    """Start an installed program in a folder, in a session of its own.

    Args:
        output: the file to which its output is added.
        errors: the file to which its standard error is added; None for that of the output.
        prepare: function of a module that the process calls first.
        environment: variables besides those of this process.
    """
    line = [str(BIN / command), *map(str, arguments)]
    variables = {**os.environ, **environment}
    server = _server()
    is_new = _read_at_import(variables) != _variables_of_server()
    assert not (is_new and prepare), "a new interpreter cannot call a function first"
    process = server.Process(
        target=_become,
        args=(line, folder, variables, output, errors or output, prepare, is_new),
    )
    process.start()
    return Program(process)


def leave_out_sleeps() -> None:
    """Let this process never sleep: HELM waits for minutes between its attempts. It can be the `prepare` of a program."""
    time.sleep = lambda seconds: None


def start_function(
    function: Callable[..., object],
    *arguments: object,
    folder: Path,
    output: Path = Path(os.devnull),
    errors: Path | None = None,
) -> Program:
    """Start a function of a module as a program, in a session of its own.

    Args:
        output: the file to which its output is added.
        errors: the file to which its standard error is added; None for that of the output.
    """
    process = _server().Process(
        target=_call,
        args=(function, arguments, folder, dict(os.environ), output, errors or output),
    )
    process.start()
    return Program(process)


def _read_at_import(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in variables.items()
        if READ_AT_IMPORT.fullmatch(name)
    }


@cache
def _variables_of_server() -> dict[str, str]:
    return _read_at_import(os.environ)


@cache
def _server() -> ForkServerContext:
    """Start the server, in the folder from which it can import the module that it preloads."""
    _variables_of_server()
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.preloaded"])
    folder = Path.cwd()
    os.chdir(ROOT)
    try:
        forkserver.ensure_running()
    finally:
        os.chdir(folder)
    return context


def _become(
    line: list[str],
    folder: Path,
    variables: dict[str, str],
    output: Path,
    errors: Path,
    prepare: Callable[[], object] | None,
    is_new: bool,
) -> None:
    """Make this process the program; it does not return."""
    _set_up(folder, variables, output, errors)
    if is_new:
        os.execv(line[0], line)
    sys.argv = line

    def run_program() -> None:
        if prepare:
            prepare()
        (program,) = entry_points(group="console_scripts", name=Path(line[0]).name)
        sys.exit(program.load()())

    os._exit(_run(run_program))


def _call(
    function: Callable[..., object],
    arguments: Sequence[object],
    folder: Path,
    variables: dict[str, str],
    output: Path,
    errors: Path,
) -> None:
    """Make this process a program that calls a function; it does not return."""
    _set_up(folder, variables, output, errors)
    os._exit(_run(lambda: function(*arguments)))


def _set_up(
    folder: Path, variables: dict[str, str], output: Path, errors: Path
) -> None:
    """Give this process the session, the folder, the environment and the files of a program."""
    os.setsid()
    # A program that needs Python's tracker of semaphores starts its own, which knows when the program is killed.
    resource_tracker._resource_tracker._fd = None  # type: ignore[attr-defined]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for number, path in enumerate((Path(os.devnull), output, errors)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(function: Callable[[], object]) -> int:
    """Call a program's function, and return the exit status as the interpreter makes it."""
    status = 0
    try:
        function()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        status = 1
        sys.last_value = error  # as Python sets it before it reports an exception
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status
