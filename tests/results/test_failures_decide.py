"""Tests that failures decide nothing, in every place where two models meet.

Two models answer equally well, but one of them fails on most of what it would get wrong. On what both answered it seems
better by more than 20 points.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import helm_longctx as lc
from helm_longctx.apps.checkpoints.sections import _Curve
from helm_longctx.apps.comparison.sections import comparison_sections
from helm_longctx.apps.pooling.sections import pooling_sections
from helm_longctx.apps.report.leaderboard import leaderboard_sections
from helm_longctx.documents.document import Figure, HeadlineAnswer
from helm_longctx.evaluation.result import EvaluationResult
from helm_longctx.results.boards import Board, make_boards
from helm_longctx.results.comparison import SharedTable
from helm_longctx.results.methods import find_gains
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import FAILURES_DECIDE
from helm_longctx.runs.shown_models import AskedMethod, ShownModel
from helm_longctx.tasks.registry import BENCHMARKS
from tests.evaluation.calls import call, look_up
from tests.support.commands import Command
from tests.support.results import result

STRICT = "a/answers"
LENIENT = "a/refuses"

QUESTIONS = 150


def answer_some(model: str, skill: float, failing: float) -> Result:
    """Return a model's answers, of whose wrong ones a share fails."""
    random = Random(model)

    def score(question: int, depth: float) -> float | None:
        is_right = random.random() < skill
        if not is_right and random.random() < failing:
            return None
        return float(is_right)

    return result(model, "nq", score, QUESTIONS)


ASKED = 80
"""Number of questions of the suite."""


def refuse_some(name: str, failing: float) -> Any:
    """Return a function that finds 60 % of the values, and fails on a share of the others."""
    random = Random(name)
    places = random.sample(range(ASKED), ASKED)

    def answer(prompt: lc.Prompt) -> str:
        if places[int(prompt.id.rpartition("-")[2])] < 0.6 * ASKED:
            return look_up(prompt)
        if random.random() < failing:
            raise ValueError("refused")
        return "unknown"

    return answer


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> EvaluationResult:
    """Evaluate two equal models, of which one fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("suite"))
        functions = [refuse_some("first", 0.0), refuse_some("second", 0.9)]
        names = [STRICT, LENIENT]
        made = call(functions, lengths="4k", num_samples=ASKED, name=names)
        return replace(made, suite=made.suite.absolute())


@pytest.fixture
def board(evaluated: EvaluationResult) -> Board:
    """Return their board."""
    (made,) = make_boards(evaluated.results, BENCHMARKS)
    return made


def test_headlines(board: Board) -> None:
    """The headline of the report names the highest score, and says that failures decide."""
    (answer,) = (
        block
        for section in leaderboard_sections(board)
        for block in section.blocks
        if isinstance(block, HeadlineAnswer)
    )
    assert answer.verdict.startswith(f"{LENIENT} has the highest score")
    assert FAILURES_DECIDE in answer.certainty.lower()
    assert not answer.is_sure
    assert "is better than" not in answer.certainty


def test_ranks(board: Board) -> None:
    """Both models have the ranks 1 to 2."""
    (ranks,) = (
        block
        for section in comparison_sections(board)
        for block in section.blocks
        if isinstance(block, Figure) and block.name.endswith("-ranks")
    )
    assert [(row["low"], row["high"]) for row in ranks.rows] == [(1, 2)] * 2


def test_all_instances(board: Board) -> None:
    """The page of all instances is sure of no rank, and names the pair."""
    (section,) = pooling_sections([board])
    (answer,) = (block for block in section.blocks if isinstance(block, HeadlineAnswer))
    assert not answer.is_sure
    assert "failures" in f"{answer.verdict} {answer.certainty} {answer.note}"


def test_evaluate(evaluated: EvaluationResult) -> None:
    """`evaluate(…).compare()` has the verdict, the shares without an answer, their test and both other differences."""
    table = evaluated.compare()
    row = table[table["by"] == "all"].iloc[0]
    assert (row["verdict"], row["better"]) == (FAILURES_DECIDE, "")
    assert abs(row["difference"]) > 0.2
    assert row["one_failed"] == 0
    assert row["other_failed"] == pytest.approx(0.36, abs=0.1)
    assert row["failed_p"] < 0.001
    assert abs(row["failed_as_wrong"]) < 0.15


def test_compare(evaluated: EvaluationResult, command: Command, tmp_path: Path) -> None:
    """`compare` says it in its text and in its file, with the score of the other model where one failed."""
    output = evaluated.suite.parents[1]
    file = tmp_path / "compare.json"
    suite = evaluated.suite.name
    arguments = ("--suite", suite, "-o", output, "--json", file, STRICT, LENIENT)
    assert command("compare", *arguments) == 0, command.err
    printed = " ".join(command.out.split())
    assert FAILURES_DECIDE in printed
    assert "is better than" not in printed
    assert "no answer:" in printed
    pairings = json.loads(file.read_text())["pairings"]
    assert {pairing["better"] for pairing in pairings} == {""}
    failures = pairings[0]["comparison"]["failures"]
    assert 0.3 < failures["other"]["other_score"] < 0.9


def test_methods(board: Board) -> None:
    """A method whose wrong answers fail is not better than plain prompts."""
    plain, other = sorted(board.tasks, key=lambda score: score.model)
    assert plain.model == STRICT
    setup = replace(plain.model.setup, method=AskedMethod("retrieve"))
    with_method = replace(other, model=ShownModel(STRICT, setup))
    (gain,) = find_gains(make_boards([plain, with_method], BENCHMARKS))
    assert gain.comparison.p_value < 0.001
    assert gain.verdict == FAILURES_DECIDE


def make_curve(failing: list[float], floor: Result | None = None) -> _Curve:
    """Return the curve of a training whose steps are equally good, and of whose wrong answers a growing share fails."""
    steps = [
        answer_some(f"mine/step-{number}", 0.4, share)
        for number, share in enumerate(failing)
    ]
    models = [steps[-1].model, steps[-3].model]
    table = SharedTable(make_boards(steps, BENCHMARKS), models)
    return _Curve(
        family="mine/step-*",
        part="nq",
        length=8192,
        scores=dict(enumerate(steps)),
        floor_result=floor,
        trend=table.pairings()[0],
    )


def test_checkpoints() -> None:
    """A training does not rise, and is not above its floor, because more and more of its wrong answers fail."""
    floor = answer_some("longctx/floor", 0.4, 0.0)
    curve = make_curve([number / 10 for number in range(10)], floor)
    assert curve.scores[9].interval.mean > floor.interval.mean + 0.3
    assert curve.direction == FAILURES_DECIDE
    assert curve.start is None


def test_checkpoints_at_a_floor_that_fails() -> None:
    """A floor that fails on its right answers has left nothing above it."""
    floor = result(
        "longctx/floor",
        "nq",
        lambda question, depth: 0.0 if question % 5 > 1 else None,
        QUESTIONS,
    )
    curve = make_curve([0.0] * 6, floor)
    assert floor.interval.mean == 0
    assert curve.scores[5].interval.mean > 0.3
    assert curve.start is None
    clean = result("longctx/floor", "nq", lambda question, depth: 0.0, QUESTIONS)
    assert make_curve([0.0] * 6, clean).start == 0
