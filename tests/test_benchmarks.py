"""Tests of how installed benchmarks are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

import helm_longctx.tasks.registry as registry


def test_a_folder_that_cannot_be_imported_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that cannot be imported is left out, and the other benchmarks are loaded and have their pages."""
    folders = registry.read_folders()
    broken = {"helm_longctx.benchmarks.broken": registry.FOLDER / "broken"}
    monkeypatch.setattr(registry, "read_folders", lambda: broken | folders)
    assert registry.load_benchmarks() == registry.BENCHMARKS
    assert "benchmark helm_longctx.benchmarks.broken is left out: ModuleNotFoundError" in caplog.text
    pages = {benchmark.name: registry.page_of(benchmark) for benchmark in registry.BENCHMARKS}
    assert pages["helmet2"] == "helm_longctx/benchmarks/helmet/helmet2/README.md"
    assert pages["helmet2_mrcr"] == pages["mrcr"] == "helm_longctx/benchmarks/mrcr/README.md"


def test_another_package_s_benchmark_is_described_by_its_code() -> None:
    """A benchmark of another package has no folder here, so its page is the address of its code."""
    theirs = replace(registry.find_benchmark("helmet"), url="https://example.org/theirs")
    assert registry.page_of(theirs) == "https://example.org/theirs"
