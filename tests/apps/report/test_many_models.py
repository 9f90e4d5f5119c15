"""Tests of suites with more models than a report can compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.apps.report import build
from helm_longctx.cli import results
from helm_longctx.results import reading
from tests.apps.report.suites import write_suite
from tests.support.commands import Command

ENTRY = "helmet_recall:task=json_kv,length=8k"


def test_more_models_than_a_report_compares(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report and a summary of too many models are refused in one line, soon after the first model too many was read."""
    suite = tmp_path / "runs/s"
    write_suite(suite, [ENTRY], {f"acme/{n}": 0.1 * n for n in range(8)}, instances=2)
    read: list[Path] = []
    read_run = reading.read_run

    def count(path: Path, *arguments: object) -> object:
        read.append(path)
        return read_run(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "read_run", count)
    monkeypatch.setattr(build, "_MOST_MODELS", 3)
    report = ("report", "--suite", "s", "--output-path", tmp_path)
    assert command(*report) == 2
    (line,) = command.err.splitlines()
    assert f"{suite} has more than 3 models in 8 runs" in line
    assert line.endswith("divide the runs among several suites")
    assert len(read) == 4
    assert not (tmp_path / "reports").exists()
    monkeypatch.setattr(results, "_MOST_MODELS", 5)
    assert command("summarize", "--suite", "s", "--output-path", tmp_path) == 2
    assert f"{suite} has more than 5 models in 8 runs" in command.err
    monkeypatch.setattr(build, "_MOST_MODELS", 8)
    assert command(*report) == 0, command.err
