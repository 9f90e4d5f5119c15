"""A judge's replies become scores by the official scripts' rules."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.helmet.verdicts import (
    read_answer,
    read_part,
    score_answer,
    score_summary,
)

PIECES = st.sampled_from(
    ['{"fluency": 1, "correctness": 2}', '{"fluency": 0, "correctness": 3}', "{", "}", "```json", "```", "text ", "\n", "{}",
     '{"recall": 2}', '{"precision": 7, "sentence_count": 9}', '{"fluency": 1}', '{"a": {"fluency": 1}}', '"']
)  # fmt: skip
REPLIES = st.lists(PIECES, max_size=5).map("".join)


def parsed(text: str, fenced: bool) -> Any:
    """Return what the official parse_json functions read."""
    matches = re.findall(r"\{.*?\}", text, re.DOTALL)
    for candidates in (
        matches,
        re.findall(r"(?:```json)(.+)(?:```)", text, re.DOTALL)
        if matches and fenced
        else [],
    ):
        try:
            return json.loads(candidates[-1])
        except (IndexError, ValueError):
            continue
    return None


@given(REPLIES)
def test_answers(reply: str) -> None:
    """The score is fluency times correctness over 3, and an unreadable reply has no score."""
    verdict = parsed(reply, fenced=False)
    readable = verdict is not None and {"fluency", "correctness"} <= set(verdict)
    expected = {"judge_score": verdict["fluency"] * verdict["correctness"] / 3, "judge_fluency": verdict["fluency"]}         if readable else {}  # fmt: skip
    assert score_answer(reply) == expected


@given(REPLIES, REPLIES, REPLIES, st.integers(0, 4))
def test_summaries(fluency: str, recall: str, precision: str, points: int) -> None:
    """The scores are key-point recall, sentence precision and F1, and one unreadable reply of three leaves no score."""
    f, r, p = (parsed(reply, fenced=True) for reply in (fluency, recall, precision))
    names = ((f, "fluency"), (r, "recall"), (p, "precision"), (p, "sentence_count"))
    scores = score_summary(
        {"fluency": fluency, "recall": recall, "precision": precision},
        ["point"] * points,
    )
    if not all(
        isinstance(reply, dict) and isinstance(reply.get(name), int)
        for reply, name in names
    ):
        assert scores == {}
        return
    rec = r["recall"] / points if points else 0
    prec = p["precision"] / p["sentence_count"] if p["sentence_count"] > 0 else 0
    f1 = f["fluency"] * 2 * rec * prec / (rec + prec) if rec + prec > 0 else 0
    assert scores == pytest.approx(
        {
            "judge_f1": f1,
            "judge_recall": rec,
            "judge_precision": prec,
            "judge_fluency": f["fluency"],
        }
    )


@pytest.mark.parametrize(
    "reply",
    [
        None,
        3,
        "",
        "no",
        '{"fluency": "1", "correctness": 1}',
        '{"fluency": 1}',
        "{}",
        "[1]",
    ],
)
def test_unreadable_replies(reply: Any) -> None:
    """An unreadable reply has no score rather than zero, and raises no error."""
    assert score_answer(reply) == {}
    assert score_summary(reply, ["a"]) == {}
    assert score_summary({"fluency": reply}, ["a"]) == {}


def test_numbers_that_no_file_can_hold() -> None:
    """Numbers that are too large for a run's files give the official score and are left out of the verdict."""
    reply = '{"fluency": 0, "correctness": 99999999999999999999}'
    assert (score_answer(reply)["judge_score"], read_answer(reply)) == (
        0,
        {"fluency": 0},
    )
    assert read_part("precision", '{"precision": 1, "sentence_count": 1e300}') == {
        "precision": 1
    }


def test_not_a_number() -> None:
    """NaN gives the official script's scores, and numbers that are not finite are in no mean."""
    replies = {
        "fluency": '{"fluency": 1}',
        "recall": '{"recall": NaN}',
        "precision": '{"precision": 1, "sentence_count": 2}',
    }
    expected = {"judge_f1": 0, "judge_precision": 0.5, "judge_fluency": 1}
    assert score_summary(replies, ["a"]) == expected
    fluent = {**replies, "fluency": '{"fluency": NaN}', "recall": '{"recall": 1}'}
    assert score_summary(fluent, ["a"]) == {"judge_recall": 1, "judge_precision": 0.5}
    assert score_answer('{"fluency": 1, "correctness": NaN}') == {}
    record = {"prediction": "a", "references": ["a"], "keypoints": ["a"]}
    for jury in ({"a/b": replies, "c/d": fluent}, {"c/d": fluent, "a/b": replies}):
        scores = HELMET.task("infbench_sum").scores(
            {**record, "jury": {"replies": jury}}
        )
        assert {name: scores[name] for name in expected} == expected
        assert "judge_recall" not in scores


def test_the_headline() -> None:
    """A record with a readable reply has a headline."""
    record = {
        "prediction": "a",
        "references": ["a"],
        "judge": 'x {"fluency": 1, "correctness": 2}',
    }
    assert HELMET.task("narrativeqa").scores(record)["longctx_score"] == pytest.approx(
        2 / 3
    )
    replies = {
        "fluency": '{"fluency": 1}',
        "recall": '{"recall": 1}',
        "precision": '{"precision": 1, "sentence_count": 2}',
    }
    for name in ("infbench_sum", "multi_lexsum"):
        scores = HELMET.task(name).scores(
            {**record, "judge": replies, "keypoints": ["a", "b"]}
        )
        assert scores["longctx_score"] == scores["judge_f1"] == pytest.approx(0.5)


def test_a_jury_without_a_verdict() -> None:
    """A record without a readable reply has no headline, and its strict score is 0, also if no judge could be asked."""
    for replies in ({}, {"a/b": None}, {"a/b": "no", "c/d": "{}"}):
        record = {
            "prediction": "a",
            "references": ["a"],
            "jury": {"replies": replies, "failed": 1.0},
        }
        scores = HELMET.task("narrativeqa").scores(record)
        assert "longctx_score" not in scores
        assert scores["judge_score_strict"] == 0
