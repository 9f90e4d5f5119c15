"""Runs command lines of the documentation in processes of their own, which start at once."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from tests.fuzz.cases import Done, run_forked

PROGRAMS = {
    "helm-longctx": "helm_longctx.cli.main",
    "helm-run": "helm.benchmark.run",
    "helm-summarize": "helm.benchmark.presentation.summarize",
}
"""Our programs and HELM's, and the modules whose `main` they are."""

PRELOADED = (
    *PROGRAMS.values(),
    *("helm.benchmark.server", "helm.benchmark.window_services.no_tokenizer_window_service"),
    *(
        "helm_longctx.plugin",
        "helm_longctx.models.apis.providers.openai",
        "helm_longctx.runner.rejudge",
        "openai",
        "anthropic",
    ),
    *(
        "helm_longctx.results.leaderboard.summarizer",
        "helm_longctx.results.report.pictures",
        "helm_longctx.results.judges.plotting",
    ),
    *("helm_longctx.cli.config.plan", "helm_longctx.results.judges.agreement", "pandas", "transformers"),
)
"""What commands import when they need it; here once for all."""

LIMIT = 120.0

_REDIRECTION = re.compile(r"(.*?) *> *(\S+) *$")


def preload() -> None:
    """Import what commands need, and fill HELM's registries with its own models."""
    for module in PRELOADED:
        importlib.import_module(module)
    config_registry().register_builtin_configs_from_helm_package()


def config_registry() -> Any:
    """HELM's module that reads its YAML files."""
    return importlib.import_module("helm.benchmark.config_registry")


def run_line(line: str, folder: Path, environment: Mapping[str, str]) -> Done:
    """Run a command line of one of `PROGRAMS`, and return its outcome. `> file` writes its output."""
    words, target = shlex.split(line, comments=True), ""
    if found := _REDIRECTION.fullmatch(shlex.join(words).replace("'>'", ">")):
        words, target = shlex.split(found[1]), found[2]
    done = run_forked(lambda: _become(words, environment), folder, LIMIT)
    if target:
        (folder / target).write_bytes(done.out)
    return done


def _become(words: list[str], environment: Mapping[str, str]) -> None:
    os.environ |= environment
    _stay_here()
    sys.argv = words
    importlib.import_module(PROGRAMS[words[0]]).main()


def _stay_here() -> None:
    """Restrict the process to this machine, end `serve` when it would wait for browsers, and use few resamples."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family == socket.AF_UNIX or str(address[0]) in ("127.0.0.1", "::1", "localhost"):
            return connect(self, address)
        _refuse()

    socket.socket.connect = connect_here  # type: ignore[method-assign, assignment]
    importlib.import_module("helm.benchmark.server").app.run = lambda **options: None
    # The port may belong to another program, as `serve` does not open it here.
    importlib.import_module("helm_longctx.cli.results")._check_port = lambda port: None
    importlib.import_module("helm_longctx.results.judges.agreement").RESAMPLES = 20
    for module in (config_registry(), importlib.import_module("helm.benchmark.run")):
        module.register_builtin_configs_from_helm_package = lambda: None


def _refuse() -> NoReturn:
    raise ConnectionRefusedError(111, "Connection refused")
