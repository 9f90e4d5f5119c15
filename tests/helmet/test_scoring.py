"""Properties of the metrics that hold for any output."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.core.task import MAIN_METRIC
from helm_longctx.helmet import scoring
from helm_longctx.helmet.tasks import HELMET

TEXT = st.text(max_size=60) | st.text("aA the1.:\n ", max_size=40)
REFERENCES = st.lists(TEXT, min_size=1, max_size=4)
TASKS = pytest.mark.parametrize("task", HELMET.tasks, ids=lambda task: task.name)


@TASKS
@given(prediction=TEXT, references=REFERENCES)
def test_scores_are_between_0_and_1(task, prediction: str, references: list[str]) -> None:
    """Whatever a model says, every metric exists and is in 0…1, and the headline is among them."""
    scores = task.scores({"prediction": prediction, "references": references})
    assert set(scores) == {*task.metrics, MAIN_METRIC}
    assert all(0 <= value <= 1 for value in scores.values())
    assert scores[MAIN_METRIC] == scores[task.headline]


@TASKS
@given(answer=st.text("abcdefxyz0123", min_size=2, max_size=20))
def test_the_right_answer_gets_1(task, answer: str) -> None:
    """The reference itself, after the answer's prefix or without it, is perfect."""
    prefix = "label: " if task.category == "icl" else "Corresponding value: "
    for prediction in (answer, prefix + answer):
        assert task.scores({"prediction": prediction, "references": [answer]})[MAIN_METRIC] == 1


@TASKS
@given(prediction=TEXT, references=REFERENCES, seed=st.integers())
def test_order_of_references_does_not_matter(task, prediction: str, references: list[str], seed: int) -> None:
    """References are a set."""
    shuffled = random.Random(seed).sample(references, len(references))
    one, two = (task.scores({"prediction": prediction, "references": r}) for r in (references, shuffled))
    assert one == pytest.approx(two)


@TASKS
def test_without_references_there_is_no_score(task) -> None:
    """Nothing to compare with is no score, not zero."""
    assert task.scores({"prediction": "x", "references": []}) == {}


@given(TEXT)
def test_parsing_gives_one_line(text: str) -> None:
    """What is parsed has no newline and no space at its ends."""
    for prefix in ("label:", "Answer:"):
        parsed = scoring.parse_output(text, prefix)
        assert "\n" not in parsed
        assert parsed == parsed.strip()


@given(TEXT)
def test_normalizing_again_changes_nothing_but_articles(text: str) -> None:
    """Normalized text has no capitals, no ASCII punctuation, no double space."""
    normal = scoring.normalize_answer(text)
    assert normal == " ".join(normal.split())
    assert not set(normal) & set("ABCDEFGHIJKLMNOPQRSTUVWXYZ.,:;!?'\"")
