"""Tests of how installed benchmarks are found."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

import helm_longctx.tasks.registry as registry


def test_a_folder_that_cannot_be_imported_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that cannot be imported is left out, and the other benchmarks are loaded and have their lines."""
    lines = [*map(registry.about_of, registry.BENCHMARKS)]
    folders = registry.read_folders()
    broken = {"helm_longctx.benchmarks.broken": registry.FOLDER / "broken"}
    monkeypatch.setattr(registry, "read_folders", lambda: broken | folders)
    assert registry.load_benchmarks() == registry.BENCHMARKS
    assert (
        "benchmark helm_longctx.benchmarks.broken is left out: ModuleNotFoundError"
        in caplog.text
    )
    assert [*map(registry.about_of, registry.BENCHMARKS)] == lines


def test_lines_about_benchmarks() -> None:
    """The line about a benchmark is in its folder's module; for a benchmark of another package it is its description."""
    helmet = registry.find_benchmark("helmet")
    assert (
        sys.modules["helm_longctx.benchmarks.helmet"].__doc__
        == f"HELMET: {registry.about_of(helmet)}."
    )
    assert registry.about_of(replace(helmet, description="Theirs")) == "Theirs"
