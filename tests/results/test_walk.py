"""Tests how far it is from an answer, and from a suite's folder, to the printed leaderboard."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
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


ANSWER = "red zebra"
F1 = 0.4
"""The score of `ANSWER blue` for the gold answer `red green`: a precision of 1/3, a recall of 1/2."""

SHAPES = ["Answer", "Record", "Score", "Result", "Board", "Table"]
"""The types that an answer has on its way, in order."""

PARTS = {
    "SplitOutput": "Answer",
    "RequestOutcome": "the queue of requests, which hands it on",
    "Interval": "Result",
    "Statistic": "Result",
    "Suite": "all boards",
    "Cell": "Table",
}
"""Further types that hold it, and what each of them is a part of."""


class Carriers:
    """Notes which types of the package are made with an answer's text, its score, or an object that has one of them."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        # Objects are kept, so that no other one gets the identity of one that has ended.
        self._carriers: dict[int, object] = {}

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """Look at each object that a function has made. Python calls this as a profiler."""
        if event != "return":
            return
        if frame.f_code.co_name == "__init__":
            self._look(frame.f_locals.get("self"))
        elif isinstance(value, tuple) and type(value) is not tuple:
            self._look(value)

    def _look(self, made: object) -> None:
        module = type(made).__module__
        if not module.startswith("helm"):
            return
        fields = getattr(made, "__dict__", {}).values()
        if isinstance(made, tuple):
            fields = made
        if not any(self._carries(field) for field in fields):
            return
        self._carriers[id(made)] = made
        is_ours = module.startswith("helm_longctx.")
        is_beside = module.startswith(
            ("helm_longctx.results.leaderboard", "helm_longctx.evaluation")
        )
        name = type(made).__name__
        if is_ours and not is_beside and not name.startswith("_"):
            self.names[name] = None

    def _carries(self, value: object, depth: int = 3) -> bool:
        if isinstance(value, str):
            return ANSWER in value
        if isinstance(value, float):
            return abs(value - F1) < 1e-12
        if id(value) in self._carriers:
            return True
        if depth and isinstance(value, dict):
            return any(self._carries(part, depth - 1) for part in value.values())
        if depth and isinstance(value, list | tuple):
            return any(self._carries(part, depth - 1) for part in value)
        return False


def test_an_answer_has_few_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the model's reply to the printed cell, an answer has six types, besides HELM's and parts of these."""
    question = {
        "context": "The door is red and green.",
        "question": "Which colours?",
        "answers": ["red green"],
    }
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
    entry = f"any_jsonl:path={tmp_path},metric=f1,count_with=longctx/words"
    arguments = ["helm-longctx", "summarize", "--suite", "evaluate", "--output-path"]
    monkeypatch.setattr(sys, "argv", [*arguments, str(tmp_path / "out")])
    carriers = Carriers()
    threading.setprofile(carriers)
    sys.setprofile(carriers)
    try:
        helm_longctx.evaluate(
            lambda prompt: f"{ANSWER} blue",
            entry,
            lengths="4k",
            quiet=True,
            output_path=tmp_path / "out",
            local_path=tmp_path / "local",
        )
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert not end.value.code
    assert "40.0" in capsys.readouterr().out
    assert [name for name in carriers.names if name not in PARTS] == SHAPES
    assert carriers.names.keys() == {*SHAPES, *PARTS}
