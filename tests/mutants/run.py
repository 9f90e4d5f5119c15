"""Runs tests on a mutant in a process of its own. The file of the module stays as it is."""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

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


def preload() -> None:
    """Import what all mutants need."""
    for name in PRELOADED:
        import_module(name)


def run_tests(
    path: Path, source: str, tests: tuple[str, ...], seconds: float
) -> bool | None:
    """Return whether tests pass with changed source of a module; None if they need more than some seconds."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.setsid()
        os._exit(_run(path, source, tests))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run(path: Path, source: str, tests: tuple[str, ...]) -> int:
    """Run pytest in this process, which is a mutant's own, and return its status."""
    import pytest

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.meta_path.insert(0, _Finder(path, source))
    try:
        return int(
            pytest.main(
                ["-q", "-x", "--tb=no", "-n", "0", "-p", "no:cacheprovider", *tests]
            )
        )
    except BaseException:
        return 3
