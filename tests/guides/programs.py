"""Runs command lines of the documentation."""

from __future__ import annotations

import importlib
import re
import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NoReturn

from tests.support.programs import run

PROGRAMS = ("helm-longctx", "helm-run", "helm-summarize")

_REDIRECTION = re.compile(r"(.*?) *> *(\S+) *$")


def run_line(
    line: str, folder: Path, environment: Mapping[str, str]
) -> CompletedProcess[str]:
    """Run a command line of one of `PROGRAMS`, and return its outcome. `> file` writes its output."""
    words = shlex.split(line, comments=True)
    target = ""
    if match := _REDIRECTION.fullmatch(shlex.join(words).replace("'>'", ">")):
        words = shlex.split(match[1])
        target = match[2]
    done = run(*words, folder=folder, prepare=stay_here, **environment)
    if target:
        (folder / target).write_text(done.stdout, encoding="utf-8")
    return done


def stay_here() -> None:
    """Restrict the process to this machine, end `serve` when it would wait for browsers, and use few resamples."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family == socket.AF_UNIX or str(address[0]) in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            return connect(self, address)
        _refuse()

    socket.socket.connect = connect_here  # type: ignore[method-assign, assignment]
    importlib.import_module("helm.benchmark.server").app.run = lambda **options: None
    # The port may belong to another program, as `serve` does not open it here.
    importlib.import_module("helm_longctx.cli.results")._check_port = lambda port: None


def _refuse() -> NoReturn:
    raise ConnectionRefusedError(111, "Connection refused")
