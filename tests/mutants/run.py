"""Runs tests on a mutant in a process of its own. The file of the module stays as it is."""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

PRELOADED = (
    "numpy",
    "scipy.stats",
    "pandas",
    "sklearn",
    "nltk",
    "hypothesis",
    "pytest",
    "helm.benchmark.model_deployment_registry",
    "helm.benchmark.run_spec",
    "datasets",
)
"""What the tests need besides the package. Each process of a mutant has it from the start."""

BUSY = 20
"""How many times longer than the processor time the tests of a mutant may take."""

FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that say nothing about a mutant."""


@dataclass(frozen=True)
class Outcome:
    """What became of the tests of a mutant.

    Args:
        passed: whether all tests passed.
        failed: the tests that failed; empty if none did, or if the process ended without one.
        seconds: seconds of the process.
    """

    passed: bool
    failed: tuple[str, ...]
    seconds: float


class _Loader(SourceFileLoader):
    """Loads a module from the mutant's source instead of the source on disk, so that no file is changed."""

    def __init__(self, name: str, path: str, source: str):
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec")


class _Finder:
    """Finds one module's changed source instead of its file."""

    def __init__(self, path: Path, source: str):
        self._path = str(path)
        self._source = source

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        spec = (
            PathFinder.find_spec(name, path)
            if name.startswith("helm_longctx.")
            else None
        )  # type: ignore[arg-type]
        if spec and spec.origin == self._path:
            spec.loader = _Loader(name, self._path, self._source)
            return spec
        return None


class _Selection:
    """Lets pytest run some tests in an order, and writes which one fails."""

    def __init__(self, tests: list[str], output: int):
        self._places = {test: place for place, test in enumerate(tests)}
        self._output = output

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._places]
        chosen.sort(key=lambda item: self._places[item.nodeid])
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._output, f"{report.nodeid}\n".encode())


def preload() -> None:
    """Import what all mutants need."""
    for name in PRELOADED:
        import_module(name)


def run_tests(
    path: Path,
    source: str,
    tests: list[str],
    seconds: float,
    most_failures: int = 1,
) -> Outcome:
    """Run tests with changed source of a module until some fail, or until they have used some processor seconds.

    A process that waits forever is ended after the time that a busy machine needs for as much work.
    """
    sys.stdout.flush()
    start = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        limit = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        os._exit(_run(path, source, tests, writing, most_failures))
    os.close(writing)
    while time.monotonic() < start + BUSY * seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.02)
    else:
        os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    # Servers and programs that its tests started may still run.
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in FROM_OUTSIDE:
        sys.exit("the tests of a mutant were ended from outside")
    os.set_blocking(reading, False)
    with os.fdopen(reading, "rb") as pipe:
        failed = (pipe.read() or b"").decode().splitlines()
    return Outcome(
        passed=status == 0,
        failed=tuple(failed),
        seconds=round(time.monotonic() - start, 1),
    )


def _run(
    path: Path, source: str, tests: list[str], output: int, most_failures: int
) -> int:
    """Run pytest in this process, which is a mutant's own, and return its status."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.meta_path.insert(0, _Finder(path, source))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    options = [
        "-q",
        f"--maxfail={most_failures}",
        "--tb=no",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    try:
        return int(pytest.main([*options, *files], [_Selection(tests, output)]))
    except BaseException:
        return 3
