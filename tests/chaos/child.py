"""A process that has imported everything once and forks a `helm-run` or `helm-longctx` for each line that it reads.

It writes two lines for each: the process's id, and its exit status when it has ended. A fork takes milliseconds where a
new interpreter takes seconds, and everything after it is as in the real command.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import helm.benchmark.metrics.basic_metrics  # noqa: F401
import helm.benchmark.run as helm_run
from openai import OpenAI

import helm_longctx.cli.main
import helm_longctx.plugin
import helm_longctx.runner
import helm_longctx.runner.batches.collection
from helm_longctx.helm.errors import install_excepthook

COMMANDS = {"helm-run": helm_run.main, "helm-longctx": helm_longctx.cli.main.main}

LONGEST_WAIT = 0.05
"""Seconds that a retry waits at most; HELM's own waits take minutes."""


def serve() -> None:
    """Fork until standard input ends. In a child, return when the child's run is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prepare()
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            _run(**order)
            return
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def _prepare() -> None:
    """Import and configure what takes seconds in every process: HELM's own configuration, and what a client imports first."""
    helm_run.register_builtin_configs_from_helm_package()
    helm_run.register_builtin_configs_from_helm_package = lambda: None
    assert OpenAI(api_key="none").chat.completions


def _run(
    folder: str, arguments: list[str], environment: dict[str, str], log: str, clock: list[list[float]], file_limit: int
) -> None:
    """Run the command in this process.

    Args:
        log: the file to which its output is added.
        clock: jumps of the system's clock: after how many seconds, and by how many.
        file_limit: most bytes in a file; 0 for no limit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.update(environment)
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # An interpreter that ends visits all its objects, and each visit copies a page of memory after a fork.
    atexit.register(_end, status := [0])
    _change_time(clock)
    if file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    command, *arguments = arguments if arguments[0] in COMMANDS else ["helm-run", *arguments]
    sys.argv = [command, *arguments]
    if command == "helm-run":
        install_excepthook()  # as the plugin does when HELM loads it
    try:
        COMMANDS[command]()
    except BaseException as error:
        status[0] = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
        raise


def _end(status: list[int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status[0])


def _change_time(jumps: list[list[float]]) -> None:
    """Let the system's clock jump, and let nothing sleep long."""
    sleep, now, start = time.sleep, time.time, time.monotonic()
    time.sleep = lambda seconds: sleep(min(seconds, LONGEST_WAIT))
    if jumps:
        time.time = lambda: now() + sum(by for after, by in jumps if time.monotonic() - start > after)


if __name__ == "__main__":
    serve()
