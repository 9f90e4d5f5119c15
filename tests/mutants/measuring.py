"""Measures which tests execute which lines of the modules that are mutated, and how long the tests take.

The rows stand in `build/mutants-tests.jsonl`, one for each file of tests. A row is made again when the file has changed,
or a mutated module whose lines it executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from tests.mutants.rooms import PACKAGE, ROOT, SOURCE, TESTS, list_modules

MEASURED = ROOT / "build" / "mutants-tests.jsonl"

MEASURING = "HELM_LONGCTX_TESTS_MEASURED"
"""Variable that tells pytest to record lines."""

Lines = dict[str, list[int]]
"""Numbers of executed lines, by module."""


@dataclass
class MeasuredFile:
    """What the tests of a file execute.

    Args:
        path: the file, from the root of the repository.
        digest: the digest of its text.
        modules: digests of the mutated modules that its tests execute, by path in the package.
        seconds: processor seconds of each test that passed, by its pytest name.
        lines: lines that each of these tests executes, its fixtures included.
    """

    path: str
    digest: str
    modules: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)

    def is_current(self) -> bool:
        """Return whether neither the file nor a module has changed since."""
        if _digest(ROOT / self.path) != self.digest:
            return False
        return all(
            _digest(PACKAGE / module) == digest
            for module, digest in self.modules.items()
        )


def read_measured() -> dict[str, MeasuredFile]:
    """Return the files of tests that were measured, by path."""
    if not MEASURED.exists():
        return {}
    rows = MEASURED.read_text(encoding="utf-8").splitlines()
    files = [MeasuredFile(**json.loads(row)) for row in rows]
    return {file.path: file for file in files}


def list_stale() -> list[str]:
    """Return the files of tests that were not measured since they or their modules changed."""
    measured = read_measured()
    paths = [
        path.relative_to(ROOT).as_posix()
        for pattern in TESTS
        for path in sorted((ROOT / "tests").glob(pattern))
    ]
    return [
        path
        for path in dict.fromkeys(paths)
        if path not in measured or not measured[path].is_current()
    ]


def measure(files: list[str]) -> None:
    """Run files of tests, and add what they execute to the file of measurements. Faults of tests are left out."""
    MEASURED.parent.mkdir(exist_ok=True)
    paths = os.pathsep.join((str(SOURCE), str(ROOT)))
    options = ["-q", "--tb=no", "-n", "0", "-m", "not long and not browser"]
    plugins = ["-p", "no:cacheprovider", "-p", "tests.mutants.measuring"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *plugins, *files],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths, MEASURING: "1"},
        check=False,
    )


def _digest(path: Path) -> str:
    if not path.exists():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


class _Recorder:
    """Records the lines of each test and of each fixture that several tests share."""

    def __init__(self) -> None:
        self._modules = {
            str(path): path.relative_to(PACKAGE).as_posix() for path in list_modules()
        }
        self._coverage: Coverage | None = None
        self._context = ""
        self._fixtures: dict[str, dict[str, set[int]]] = {}
        self._tests: dict[str, list[str]] = {}
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        if self._coverage is None:
            self._coverage = Coverage(
                data_file=None, config_file=False, include=list(self._modules)
            )
            self._coverage.start()
        self._switch(item.nodeid)
        before = _read_clock()
        result = yield
        self._seconds[item.nodeid] = _read_clock() - before
        self._tests[item.nodeid] = _list_fixtures(item)
        if nextitem is None or nextitem.path != item.path:
            self._write(item.path)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[object]:
        before = self._context
        if fixturedef.scope != "function":
            self._switch(_name_fixture(fixturedef))
        result = yield
        self._switch(before)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def _switch(self, context: str) -> None:
        self._context = context
        if self._coverage is not None:
            self._coverage.switch_context(context)

    def _write(self, path: Path) -> None:
        """Add a row with what the tests of a file executed."""
        assert self._coverage is not None
        self._coverage.stop()
        executed = self._read_lines()
        self._coverage = None
        file = MeasuredFile(path.relative_to(ROOT).as_posix(), _digest(path))
        for test, fixtures in self._tests.items():
            if test in self._failed:
                continue
            lines: defaultdict[str, set[int]] = defaultdict(set)
            for context in (test, *fixtures):
                own = executed.get(context) or self._fixtures.get(context, {})
                for module, numbers in own.items():
                    lines[module] |= numbers
            file.seconds[test] = round(self._seconds[test], 3)
            file.lines[test] = {
                module: sorted(numbers) for module, numbers in lines.items()
            }
            for module in lines:
                file.modules[module] = _digest(PACKAGE / module)
        self._tests.clear()
        with MEASURED.open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(asdict(file)) + "\n")

    def _read_lines(self) -> dict[str, dict[str, set[int]]]:
        """Return the lines by context and module. Those of shared fixtures are kept for later files."""
        assert self._coverage is not None
        data = self._coverage.get_data()
        executed: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(
            lambda: defaultdict(set)
        )
        for path in data.measured_files():
            module = self._modules[path]
            for line, contexts in data.contexts_by_lineno(path).items():
                for context in contexts:
                    executed[context][module].add(line)
        for context, lines in executed.items():
            if context not in self._tests:
                self._fixtures[context] = lines
        return executed


def _read_clock() -> float:
    """Return the processor seconds of this process and of its ended children."""
    return sum(os.times()[:4])


def _list_fixtures(item: pytest.Item) -> list[str]:
    """Return the names of the contexts of the fixtures that a test shares with others."""
    definitions = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    return [
        _name_fixture(overriding[-1])
        for overriding in definitions
        if overriding[-1].scope != "function"
    ]


def _name_fixture(definition: Any) -> str:
    return f"fixture {definition.baseid} {definition.argname}"


def pytest_configure(config: pytest.Config) -> None:
    """Record the lines if `measure` started this process."""
    if MEASURING in os.environ:
        config.pluginmanager.register(_Recorder())
