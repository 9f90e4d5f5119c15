"""Tests of how installed benchmarks are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import helm_longctx.tasks.registry as registry


class Point:
    """An entry point that loads an object, or fails."""

    def __init__(self, name: str, benchmark: Any):
        self.name, self.value, self._benchmark = name, f"{name}:BENCHMARK", benchmark

    def load(self) -> Any:
        """Return the object, or raise the error."""
        if isinstance(self._benchmark, Exception):
            raise self._benchmark
        return self._benchmark


def test_a_benchmark_that_cannot_be_used_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A benchmark that fails to load or repeats a run entry is left out with a warning, and the others are loaded."""
    helmet = registry.find_benchmark("helmet")
    theirs, copy = replace(helmet, name="theirs"), replace(helmet, title="Copy")
    points = [Point("c", theirs), Point("b", ImportError("no such module")), Point("d", theirs), Point("a", copy)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert registry.load_benchmarks() == (*registry.BENCHMARKS, theirs)
    assert caplog.messages == [
        "benchmark a:BENCHMARK is left out: another one has the run entry " + ", ".join(sorted(helmet.entries)),
        "benchmark b:BENCHMARK is left out: ImportError: no such module",
    ]


def test_an_entry_point_can_name_our_benchmark(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Entry points of our benchmarks, which an old installation still has, cause no warning and no second copy."""
    points = [Point(benchmark.name, benchmark) for benchmark in registry.BENCHMARKS]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert registry.load_benchmarks() == registry.BENCHMARKS
    assert caplog.messages == []


def test_a_folder_that_cannot_be_imported_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that cannot be imported is left out, and the other benchmarks are loaded and have their pages."""
    folders = registry.read_folders()
    broken = {"helm_longctx.benchmarks.broken": registry.FOLDER / "broken"}
    monkeypatch.setattr(registry, "read_folders", lambda: broken | folders)
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    assert registry.load_benchmarks() == registry.BENCHMARKS
    assert "benchmark helm_longctx.benchmarks.broken is left out: ModuleNotFoundError" in caplog.text
    pages = {benchmark.name: registry.page_of(benchmark) for benchmark in registry.BENCHMARKS}
    assert pages["helmet2"] == "helm_longctx/benchmarks/helmet/helmet2/README.md"
    assert pages["helmet2_mrcr"] == pages["mrcr"] == "helm_longctx/benchmarks/mrcr/README.md"


def test_another_package_s_benchmark_is_described_by_its_code() -> None:
    """A benchmark of another package has no folder here, so its page is the address of its code."""
    theirs = replace(registry.find_benchmark("helmet"), url="https://example.org/theirs")
    assert registry.page_of(theirs) == "https://example.org/theirs"
