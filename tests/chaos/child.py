"""A process that has imported everything once and forks a `helm-run` for each line that it reads.

It writes two lines for each: the process's id, and one more when it has ended. A fork takes milliseconds where a new
interpreter takes seconds, and everything after it is as in the real command.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from pathlib import Path

import helm.benchmark.metrics.basic_metrics  # noqa: F401
import helm.benchmark.run as helm_run
from openai import OpenAI

import helm_longctx.batching.collection
import helm_longctx.cli.main
import helm_longctx.plugin
import helm_longctx.running

COMMANDS = {"helm-run": helm_run.main, "helm-longctx": helm_longctx.cli.main.main}

LONGEST_WAIT = 0.05
"""Seconds that a retry waits at most; HELM's own waits take minutes."""


def serve() -> None:
    """Fork until standard input ends. In a child it returns when the child's run is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prepare()
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            _run(Path(order["folder"]), order["arguments"])
            return
        print(process, flush=True)
        os.waitpid(process, 0)
        print("ended", flush=True)


def _prepare() -> None:
    """What takes seconds in every process: HELM's own configuration, and what a client imports when it is first used."""
    helm_run.register_builtin_configs_from_helm_package()
    helm_run.register_builtin_configs_from_helm_package = lambda: None
    assert OpenAI(api_key="none").chat.completions


def _run(folder: Path, arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    with (folder / "log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    # An interpreter that ends visits all its objects, and each visit copies a page of memory after a fork.
    atexit.register(os._exit, 0)
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, LONGEST_WAIT))
    command, *arguments = arguments if arguments[0] in COMMANDS else ["helm-run", *arguments]
    sys.argv = [command, *arguments]
    COMMANDS[command]()


if __name__ == "__main__":
    serve()
