"""Tests of questions that end a run when they are decided."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from helm_longctx.errors import InputError
from helm_longctx.results.statistics.comparison import Pairs, compare_parts
from helm_longctx.results.stopping import StoppingQuestion
from helm_longctx.runs.scores import Score
from helm_longctx.tasks.stop_rules import Rule, parse_rule
from tests.support.scores import make_score

ROUNDS = (32, 48, 72, 108, 162, 243, 365, 548)


def score(
    number: int, value: float | None, task: str = "t", group: str = "", repeat: int = 0
) -> Score:
    name = f"{task}-{number}"
    return make_score(value, name, task=task, repeat=repeat, group=group or name)


def scores(values: Iterable[float], task: str = "t") -> list[Score]:
    return [score(number, value, task) for number, value in enumerate(values)]


def stop_after(question: StoppingQuestion, *answers: list[Score]) -> tuple[int, str]:
    """Look after each round, and return the number of instances at the end and the answer."""
    for size in ROUNDS:
        question.observe([answer[:size] for answer in answers])
        if text := question.decide().text:
            return size, text
    return 0, ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "score",
        "score=",
        "score=0",
        "score=100",
        "score=x",
        "width=-1",
        "better=2",
        "x=1",
    ],
)
def test_other_texts_are_no_rules(text: str) -> None:
    """A mistake in a rule ends with an error that names what is allowed."""
    with pytest.raises(
        InputError,
        match=r"stop_when=.* is invalid; give better, score=POINTS or width=POINTS",
    ):
        parse_rule(text)


def test_rules() -> None:
    """Points are shares of a hundred."""
    assert parse_rule("better") == Rule("better")
    assert parse_rule("score=60") == Rule("score", 0.6)
    assert parse_rule("width=2.5") == Rule("width", 0.025)


def test_a_clear_difference_stops_early() -> None:
    """Two models that differ by 40 points are told apart after a small part of the instances, in the right direction."""
    rng = np.random.default_rng(1)
    good, bad = (scores(rng.random(600) < share) for share in (0.9, 0.5))
    assert stop_after(
        StoppingQuestion(parse_rule("better"), ["a", "b"]), good, bad
    ) == (
        32,
        "a is better than b",
    )
    assert (
        stop_after(StoppingQuestion(parse_rule("better"), ["b", "a"]), bad, good)[1]
        == "a is better than b"
    )


def test_a_threshold_and_a_width() -> None:
    """A score is known to be above or below a threshold, or to some points, and otherwise the question stays open."""
    ones = scores([1.0] * 600)
    assert stop_after(StoppingQuestion(parse_rule("score=60"), ["m"]), ones) == (
        32,
        "m is above 60 %",
    )
    assert (
        stop_after(
            StoppingQuestion(parse_rule("score=60"), ["m"]), scores([0.0] * 600)
        )[1]
        == "m is below 60 %"
    )
    assert stop_after(StoppingQuestion(parse_rule("width=5"), ["m"]), ones) == (
        162,
        "m is known to 5 points",
    )
    halves = scores([0.0, 1.0] * 300)
    assert stop_after(StoppingQuestion(parse_rule("score=50"), ["m"]), halves) == (
        0,
        "",
    )


@pytest.mark.parametrize("rule", ["better", "score=50"])
def test_the_error_is_kept_although_somebody_looks_after_each_round(rule: str) -> None:
    """If there is nothing to find, few runs stop. `python -m bench.stopping` counts them in thousands of runs."""
    rng = np.random.default_rng(2)
    ended = 0
    for _ in range(40):
        answers = [
            scores(rng.random(ROUNDS[4]) < 0.5) for _ in range(parse_rule(rule).models)
        ]
        ended += bool(
            stop_after(
                StoppingQuestion(parse_rule(rule), ["a", "b"][: len(answers)]), *answers
            )[1]
        )
    assert ended <= 4


def test_the_mean_is_that_of_the_tables() -> None:
    """The value is a mean over tasks of the means over their questions, however these are divided into clusters."""
    question = StoppingQuestion(parse_rule("width=1"), ["m"])
    first = [score(0, 1.0, "a", "book"), score(1, 0.0, "a", "book"), score(0, 1.0, "b")]
    question.observe([first])
    assert question.decide().interval.mean == pytest.approx(0.75)
    more = [*first, score(2, 1.0, "a", "book"), score(3, None, "a")]
    question.observe([more])
    assert question.decide().interval.mean == pytest.approx((2 / 3 + 1) / 2)
    assert question.asked == 4
    question.observe([[*more, score(4, 0.0, "a"), score(1, 0.0, "b")]])
    assert question.decide().interval.mean == pytest.approx((0.5 + 0.5) / 2)
    assert question.looks == {3, 4, 6}


def test_the_interval_contains_the_mean_of_all_questions() -> None:
    """Books with many questions, which are harder, count with all their questions, as in the tables."""
    random = np.random.default_rng(4)
    truth = (0.8 + 10 * 0.4) / 11
    outside = 0
    for _ in range(40):
        rows = [
            score(
                position,
                float(random.random() < (0.8 if size == 1 else 0.4)),
                group=f"book {book}",
            )._replace(instance=f"{book}-{position}")
            for book, size in enumerate(random.choice([1, 10], 60))
            for position in range(size)
        ]
        question = StoppingQuestion(parse_rule("score=50"), ["m"])
        for size in ROUNDS[:5]:
            question.observe([rows[:size]])
        interval = question.decide().interval
        outside += not interval.low <= truth <= interval.high
    # Of 40 intervals, 7 or more are wrong with a probability of 0.3 % if the error is 5 %.
    assert outside <= 6


def test_compare_knows_of_the_rounds() -> None:
    """A comparison after the last round agrees with the rule, and its interval is wider than that of a fixed sample."""
    rng = np.random.default_rng(3)
    first, second = (scores(rng.random(600) < share) for share in (0.7, 0.55))
    question = StoppingQuestion(parse_rule("better"), ["a", "b"])
    size, text = stop_after(question, first, second)
    assert text == "a is better than b"
    values = [[row.score for row in rows[:size]] for rows in (first, second)]
    pairs = [Pairs(values[0], values[1], range(size), 1.0)]
    after = compare_parts(pairs, tuple(sorted(question.looks)))
    fixed = compare_parts(pairs)
    assert fixed.p_value < after.p_value < 0.05
    assert after.effect == question.decide().interval
    assert after.effect.low < fixed.effect.low
    # The same looks, and one more after the run was completed.
    other = StoppingQuestion(parse_rule("better"), ["a", "b"], question.looks)
    other.observe([first, second])
    assert other.looks == question.looks | {600}


def test_repeats_are_averaged_and_pairs_need_both_answers() -> None:
    """A difference is of the means over repeats, on the instances that both models have answered."""
    question = StoppingQuestion(parse_rule("better"), ["a", "b"])
    ours = [score(0, 1.0), score(0, 0.0, repeat=1), score(1, 1.0)]
    question.observe([ours, [score(0, 0.25), score(1, None)]])
    assert question.decide().interval.mean == 0.25
    assert question.decide().interval.n == 1
    nothing = StoppingQuestion(parse_rule("better"), ["a", "b"])
    nothing.observe([[score(0, None)], [score(0, None)]])
    assert (nothing.decide().text, nothing.decide().interval.low, nothing.looks) == (
        "",
        -1.0,
        set(),
    )


def test_scores_above_one_are_refused() -> None:
    """A score that is not a share has no bounds, so no test of a bounded mean is right for it."""
    with pytest.raises(
        InputError, match="stop_when needs scores between 0 and 1, but t has 3"
    ):
        StoppingQuestion(parse_rule("score=60"), ["m"]).observe([scores([3.0])])


def test_failures_of_wrong_answers_do_not_end_a_run() -> None:
    """A model whose wrong answers fail is not better than one that answers everything equally well."""
    random = np.random.default_rng(4)
    right = random.random((2, 200)) < 0.5
    one = [score(number, float(value)) for number, value in enumerate(right[0])]
    other = [
        score(number, 1.0 if value else None) for number, value in enumerate(right[1])
    ]
    question = StoppingQuestion(parse_rule("better"), ["one", "other"])
    question.observe([one, other])
    verdict = question.decide()
    assert verdict.interval.high < 0
    assert verdict.text == ""


@pytest.mark.parametrize(
    ("rule", "failed_side"), [("score=60", 0.0), ("score=40", 1.0), ("width=15", 0.0)]
)
def test_failures_do_not_decide_a_score(rule: str, failed_side: float) -> None:
    """A model of which the wrong, or the right answers fail has no score above or below a threshold by that.

    It has no narrow interval either: what the failures could have scored belongs to it.
    """
    right = np.random.default_rng(5).random(400) < 0.5
    answers = [
        score(number, None if value == failed_side and number % 4 else value)
        for number, value in enumerate(map(float, right))
    ]
    question = StoppingQuestion(parse_rule(rule), ["m"])
    question.observe([answers])
    verdict = question.decide()
    assert (verdict.text, verdict.is_left_to_failures) == ("", True)
    assert str(verdict) == "cannot tell: failures decide"
    assert verdict.interval.low < 0.5 < verdict.interval.high
    only_answers = StoppingQuestion(parse_rule(rule), ["m"])
    only_answers.observe([[answer for answer in answers if answer.score is not None]])
    assert only_answers.decide().text


def test_few_failures_leave_a_clear_score_decided() -> None:
    """A score that is above the threshold also with failures as wrong answers is above it."""
    answers = [score(number, 1.0 if number % 10 else None) for number in range(100)]
    question = StoppingQuestion(parse_rule("score=60"), ["m"])
    question.observe([answers])
    verdict = question.decide()
    assert verdict.text == "m is above 60 %"
    assert verdict.interval.mean == pytest.approx(1.0)
    # A repeat that failed counts in proportion.
    halves = [score(0, 1.0), score(0, None, repeat=1)]
    question = StoppingQuestion(parse_rule("width=50"), ["m"])
    question.observe([halves])
    assert question.decide().interval.low < 0.5
