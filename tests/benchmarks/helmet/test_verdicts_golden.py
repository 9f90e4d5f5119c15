"""The scores of replies equal the official scripts', which were run on the same replies (golden_verdicts.json)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean

import pytest

from helm_longctx.benchmarks.helmet.verdicts import (
    read_answer,
    read_part,
    score_answer,
    score_summary,
)
from helm_longctx.tasks.task import MetricValues
from tests.benchmarks.helmet.fabricate_replies import (
    LAST,
    Judged,
    answer_replies,
    summary_replies,
    verdict,
)

GOLDEN = json.loads(
    Path(__file__).with_name("golden_verdicts.json").read_text(encoding="utf-8")
)
ANSWERS = answer_replies()
SUMMARIES = summary_replies()
NAMES = ("judge_f1", "judge_recall", "judge_precision", "judge_fluency")
BEYOND = verdict(fluency="1" + "0" * 400, correctness="0")
LISTS = verdict(fluency="[1]"), verdict(fluency="[]")
"""Fluencies that are lists; the official scripts compute with them if the rest is 0, and here they give no score."""


def worth(case: Judged) -> MetricValues:
    replies = {
        "fluency": case.fluency,
        "recall": case.recall,
        "precision": case.precision,
    }
    return score_summary(replies, ["point"] * case.keypoints)


def has_numbers(outcome: list[float] | str | None) -> bool:
    """Return whether the official script made numbers of a reply that give a finite mean."""
    return isinstance(outcome, list) and all(map(math.isfinite, outcome))


def test_answers(subtests: pytest.Subtests) -> None:
    """The score is the official number over 3, and is absent where the official script gives no finite number or
    ends."""
    for number, (outcome, reply) in enumerate(
        zip(GOLDEN["answers"], ANSWERS, strict=True)
    ):
        with subtests.test(number=number):
            score = score_answer(reply)
            assert ("judge_score" in score) == (
                has_numbers(outcome) and reply != BEYOND
            ), reply
            if score:
                assert score["judge_score"] == pytest.approx(
                    outcome[0] / 3, abs=1e-12
                ), reply


def test_summaries(subtests: pytest.Subtests) -> None:
    """The scores are the finite ones of the four official numbers, and are absent where the official script has
    none."""
    for number, (outcome, replies) in enumerate(
        zip(GOLDEN["summaries"], SUMMARIES, strict=True)
    ):
        has_outcome = isinstance(outcome, list) and replies.fluency not in LISTS
        numbers = dict(zip(NAMES, outcome, strict=True)) if has_outcome else {}
        finite = {
            name: value for name, value in numbers.items() if math.isfinite(value)
        }
        with subtests.test(number=number):
            assert worth(replies) == pytest.approx(finite, abs=1e-12), replies


def test_means() -> None:
    """The means over the readable replies equal the official script's."""
    answers = [score_answer(reply) for reply in ANSWERS[-LAST:]]
    (official,) = GOLDEN["mean of last answers"]
    assert fmean(
        scores["judge_score"] for scores in answers if scores
    ) == pytest.approx(official / 3, abs=1e-12)
    summaries = [scores for scores in map(worth, SUMMARIES[-LAST:]) if scores]
    means = [fmean(scores[name] for scores in summaries) for name in NAMES]
    assert means == pytest.approx(GOLDEN["mean of last summaries"], abs=1e-12)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in SUMMARIES[:60] + SUMMARIES[-LAST:]
        if "308" not in str(case.fluency)
    ],
)
def test_what_can_be_read_has_a_score(case: Judged) -> None:
    """A reply can be read exactly if it has a score, so a judge is asked again only if there would be no score."""
    parts = {
        "fluency": case.fluency,
        "recall": case.recall,
        "precision": case.precision,
    }
    readable = all(read_part(part, reply) is not None for part, reply in parts.items())
    assert readable == ("judge_f1" in score_summary(parts, ["point"]))
    for reply in parts.values():
        assert (read_answer(reply) is not None) == bool(score_answer(reply))


def test_enough_was_compared() -> None:
    """The golden file has several hundred scores and missing scores, and three kinds of errors."""
    outcomes = [*GOLDEN["answers"], *GOLDEN["summaries"]]
    assert sum(map(has_numbers, outcomes)) > 300
    assert outcomes.count(None) > 200
    assert {"KeyError", "TypeError", "OverflowError"} == {
        o for o in outcomes if isinstance(o, str)
    }
