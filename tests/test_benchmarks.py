"""Finding installed benchmarks."""

from __future__ import annotations

from typing import Any

import pytest

import helm_longctx.benchmarks as registry


class Point:
    """An entry point that loads an object, or fails."""

    def __init__(self, name: str, benchmark: Any):
        self.name, self.value, self._benchmark = name, f"{name}:BENCHMARK", benchmark

    def load(self) -> Any:
        """The object."""
        if isinstance(self._benchmark, Exception):
            raise self._benchmark
        return self._benchmark


def test_a_benchmark_that_cannot_be_used_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that fails to load, or repeats a run entry, costs the others nothing; a warning names it."""
    helmet, lv_eval = registry.find_benchmark("helmet"), registry.find_benchmark("lv_eval")
    points = [Point("a", helmet), Point("b", ImportError("no such module")), Point("c", lv_eval), Point("d", helmet)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert registry.load_benchmarks() == (helmet, lv_eval)
    assert "benchmark b:BENCHMARK is left out: ImportError: no such module" in caplog.text
    assert "benchmark d:BENCHMARK is left out: another one has the run entry helmet_cite" in caplog.text
