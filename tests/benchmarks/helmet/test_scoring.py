"""HELMET's metrics have these properties for any output."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet import scoring
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.tasks.task import MAIN_METRIC

TEXT = st.text(max_size=60) | st.text("aA the1.:\n ", max_size=40)
REFERENCES = st.lists(TEXT, min_size=1, max_size=4)
BY_REFERENCE = [
    t for t in HELMET.tasks if t.metrics in (scoring.ANSWER_METRICS, ("ruler_recall",))
]
HEADLINED = [t for t in BY_REFERENCE if set(t.headline) <= set(t.metrics)]
SCORED_ALIKE = {
    (t.score, t.metrics, t.headline, t.template.prefix): t for t in HEADLINED
}
"""A task for each way to score: only these fields of a task decide its scores."""
TASKS = pytest.mark.parametrize(
    "task", SCORED_ALIKE.values(), ids=lambda task: task.name
)


@TASKS
@given(prediction=TEXT, references=REFERENCES)
def test_scores_are_between_0_and_1(
    task, prediction: str, references: list[str]
) -> None:
    """Every output has all metrics and the headline, all between 0 and 1."""
    scores = task.scores({"prediction": prediction, "references": references})
    assert set(scores) == {*task.metrics, MAIN_METRIC}
    assert all(0 <= value <= 1 for value in scores.values())
    assert scores[MAIN_METRIC] == scores[task.headline[0]]


@pytest.mark.parametrize("name", ["narrativeqa", "infbench_sum", "multi_lexsum"])
def test_a_score_that_a_judge_gives_is_absent_without_one(name: str) -> None:
    """Without a judge, ROUGE and F1 are computed, and the headline is absent rather than zero."""
    task = HELMET.task(name)
    scores = task.scores({"prediction": "a house", "references": ["a house"]})
    assert set(scores) == set(scoring.ANSWER_METRICS)
    assert scores["rougeL_f1"] == 1


@TASKS
@given(answer=st.text("abcdefxyz0123", min_size=2, max_size=20))
def test_the_right_answer_gets_1(task, answer: str) -> None:
    """The reference itself scores 1, after the answer's prefix or without it."""
    prefix = f"{task.template.prefix} "
    for prediction in (answer, prefix + answer):
        assert (
            task.scores({"prediction": prediction, "references": [answer]})[MAIN_METRIC]
            == 1
        )


@TASKS
@given(prediction=TEXT, references=REFERENCES, seed=st.integers())
def test_order_of_references_does_not_matter(
    task, prediction: str, references: list[str], seed: int
) -> None:
    """The order of references changes no score, except for a choice, whose second reference is the letter with its
    option."""
    if task.name == "infbench_choice":
        return
    shuffled = random.Random(seed).sample(references, len(references))
    one, two = (
        task.scores({"prediction": prediction, "references": r})
        for r in (references, shuffled)
    )
    assert one == pytest.approx(two)


@TASKS
def test_without_references_there_is_no_score(task) -> None:
    """An output without references has no score rather than zero."""
    assert task.scores({"prediction": "x", "references": []}) == {}


@given(TEXT)
def test_parsing_gives_one_line(text: str) -> None:
    """The parsed text has no newline and no space at its ends."""
    for prefix in ("label:", "Answer:"):
        parsed = scoring.parse_output(text, prefix)
        assert "\n" not in parsed
        assert parsed == parsed.strip()


@given(TEXT)
def test_normalizing_again_changes_nothing_but_articles(text: str) -> None:
    """The normalized text has no capitals, no ASCII punctuation and no double space."""
    normal = scoring.normalize_answer(text)
    assert normal == " ".join(normal.split())
    assert not set(normal) & set("ABCDEFGHIJKLMNOPQRSTUVWXYZ.,:;!?'\"")
