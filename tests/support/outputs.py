"""Runs of answers that other programs gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from helm_longctx.apps.exchange.answers import resolve_entry
from helm_longctx.apps.exchange.importing import import_run
from helm_longctx.tasks.outputs import Output, OutputRun
from helm_longctx.tasks.registry import BENCHMARKS


def write(
    suite: Path, entry: str, answers: Sequence[Output], model: str = "some/model"
) -> None:
    """Write a run with these answers into a suite, as an import does."""
    located = []
    for number, answer in enumerate(answers):
        located.append(replace(answer, location=f"file: row {number}"))
    run = OutputRun(entry, model, located)
    import_run(suite, resolve_entry(BENCHMARKS, entry), run, model)


def write_suite(folder: Path) -> Path:
    """Write runs of two tasks. A third of the requests of one task failed, and all requests of the other task."""
    answers = [
        Output(
            f"q{n}",
            None if n == 2 else "Paris" if n else "Rome",
            ["Paris"],
            error="timeout",
        )
        for n in range(3)
    ]
    write(folder / "runs/mine", "helmet_rag:task=nq,length=8k", answers)
    write(folder / "runs/mine", "helmet_rag:task=popqa,length=8k", answers[2:])
    return folder / "runs/mine"
