"""Tests how far it is from a suite's folder to the printed leaderboard."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import helm_longctx
from helm_longctx.cli.main import main
from helm_longctx.documents.document import Cell, Table
from helm_longctx.results.boards import Board
from helm_longctx.results.reading import Result
from helm_longctx.results.suite import write_reference
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.registry import find_benchmark
from tests.apps.report.suites import write_run

ROOT = Path(helm_longctx.__file__).parent
MADE = (
    (Score, "__new__"),
    *((kind, "__init__") for kind in (Result, Board, Table, Cell)),
    (Console, "print"),
)
"""What a reader meets on the way, by the function that makes it, and the end of the way."""


def functions_on_the_stack() -> list[tuple[str, str]]:
    """Return the module and the name of each function of the package that has not ended."""
    functions = []
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        path = Path(frame.f_code.co_filename)
        name = frame.f_code.co_name
        if path.is_relative_to(ROOT) and not name.startswith("<"):
            functions.append((str(path.relative_to(ROOT)), name))
    return functions


def test_the_way_to_the_leaderboard_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While answers, results, boards and tables are made, and tables printed, 20 functions of 7 modules are at work."""
    suite = tmp_path / "runs/s"
    walk = set()
    # Known errors, a mean of several tasks, an overall score, and published results are on the way.
    for entry in (
        "graphwalks:task=openai_parents,length=128k",
        "helmet_recall:length=8k",
        "helmet_rag:length=8k",
    ):
        for model in ("my/one", "my/two"):
            write_run(suite, f"{entry},model={model}", model, 0.7, 6, "", flaws=True)
    write_reference(find_benchmark("helmet"), suite, ["GPT-4o-08*"])

    def note(make: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **named: Any) -> Any:
            stack = functions_on_the_stack()
            # Other cells are made for HELM's pages.
            if "write_leaderboard" not in {name for _, name in stack}:
                walk.update(stack)
            return make(*arguments, **named)

        return noted

    for kind, name in MADE:
        changed = note(getattr(kind, name))
        monkeypatch.setattr(
            kind, name, staticmethod(changed) if name == "__new__" else changed
        )
    monkeypatch.setattr(
        sys,
        "argv",
        ["helm-longctx", "summarize", "--suite", "s", "--output-path", str(tmp_path)],
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert "without" in capsys.readouterr().out
    walk = {
        (module, name) for module, name in walk if module != "cli/main.py"
    }  # the start of every command
    assert ("runs/scores.py", "score_records") in walk
    assert ("documents/terminal.py", "print_table") in walk
    assert len(walk) <= 20, sorted(walk)
    assert len({module for module, _ in walk}) <= 7, sorted(walk)
