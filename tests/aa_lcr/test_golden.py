"""Prompts, the judge's prompts, verdicts and their mean equal the official code's on the same data (make_golden.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.aa_lcr.data import questions
from helm_longctx.benchmarks.aa_lcr.scoring import judge_prompt, mean_over_questions, read_verdict, score
from tests.aa_lcr.fabricate import ROWS, build_aa_lcr, candidates, replies
from tests.official import digest

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_aa_lcr(tmp_path_factory.mktemp("aa_lcr"))


def test_prompts(path: Path) -> None:
    """Every prompt and the order are the official ones."""
    found = list(questions(path))
    assert [question.number for question in found] == list(range(ROWS))
    assert digest(question.prompt for question in found) == GOLDEN["prompts"]


def test_judge_prompts(path: Path) -> None:
    """So is what the judge is asked."""
    asked = [
        judge_prompt(question.question, question.answer, candidate)
        for question, candidate in zip(questions(path), candidates(), strict=True)
    ]
    assert digest(asked) == GOLDEN["judge_prompts"]


def test_verdicts() -> None:
    """Replies are read as the official code reads them: only two texts are verdicts."""
    assert [[read_verdict(reply) for reply in repeat] for repeat in replies()] == GOLDEN["verdicts"]
    assert {verdict for repeat in GOLDEN["verdicts"] for verdict in repeat} == {0, 1, None}


def test_mean() -> None:
    """The mean over questions of the mean over repeats, without what has no verdict."""
    by_question = list(zip(*([read_verdict(reply) for reply in repeat] for repeat in replies()), strict=True))
    assert mean_over_questions(by_question) == pytest.approx(GOLDEN["mean"], abs=1e-15)
    assert mean_over_questions([(None, None)]) is None


def test_scores() -> None:
    """A record's score is its judge's verdict; without one there is none."""
    assert score({"prediction": "x", "references": ["y"], "judge": "CORRECT"}) == {"judge_score": 1}
    assert score({"prediction": "x", "references": ["y"], "judge": "INCORRECT"}) == {"judge_score": 0}
    assert score({"prediction": "x", "references": ["y"], "judge": ["CORRECT"]}) == {}
    assert score({"prediction": "x", "references": ["y"]}) == {}
