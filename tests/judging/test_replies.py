"""Tests that any reply gives each benchmark's parser a verdict within its range, or none, without an error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helm_longctx.benchmarks.aa_lcr.judge import VerdictAnnotator
from helm_longctx.benchmarks.any_jsonl.tasks import read_grade
from helm_longctx.benchmarks.helmet.verdicts import (
    PARTS,
    read_answer,
    read_part,
    score_answer,
    score_summary,
)
from helm_longctx.benchmarks.longbench_write.tasks import GRADES
from helm_longctx.judging.entailment import _parse_reply
from helm_longctx.judging.judge import JudgeRequest, make_judge
from helm_longctx.tasks.judge_scores import judge_scores
from tests.runner.making import PlainClient, answered
from tests.support.fabricated import fabricated

Reader = Callable[[Any], Mapping[str, Any] | None]

BOUNDED: dict[str, Reader] = {
    **fabricated("read_reply"),
    "entailment": _parse_reply,
    "jury": lambda reply: judge_scores(
        {"jury": {"replies": {"a": reply, "b": reply}}}, "judge_score", read_grade
    ),
    "empty jury": lambda reply: judge_scores(
        {"jury": {"replies": None}}, "judge_score", read_grade
    ),
}
"""The parsers whose verdicts are from 0 to 1."""

OFFICIAL: dict[str, Reader] = {
    "answer": read_answer,
    "answer's scores": score_answer,
    **{part: lambda reply, part=part: read_part(part, reply) for part in PARTS},  # type: ignore[misc]
    "summary": lambda reply: score_summary(dict.fromkeys(PARTS, reply), ["a", "b"]),
}
"""HELMET's parsers: the official scripts compute with whatever number they find, so these are only finite."""

FIELDS = [
    *GRADES.values(),
    "fluency",
    "correctness",
    "recall",
    "precision",
    "sentence_count",
]
NUMBERS = st.one_of(
    st.integers(-3, 60),
    st.floats(),
    st.integers(),
    st.sampled_from([10**400, -1, 0, 1e308, 2**53, True, "3", "x"]),
)
VALUES = st.one_of(
    NUMBERS, st.none(), st.text(max_size=3), st.lists(st.integers(), max_size=2)
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES) | st.fixed_dictionaries(
    dict.fromkeys(FIELDS, NUMBERS)
)
PIECES = st.one_of(
    st.sampled_from(
        [
            "GRADE:",
            " ",
            "**",
            "\n",
            "8",
            "/10",
            " out of 100",
            "%",
            "-",
            ".5",
            "yes",
            "1",
            "0.",
            "CORRECT",
        ]
    ),
    st.sampled_from(
        ["```json\n", "\n```", "{", "}", "[" * 5000, "9" * 5000, "NaN", "\udc80", "٣"]
    ),
    OBJECTS.map(json.dumps),
    st.text(max_size=8),
)
REPLIES = st.one_of(
    st.lists(PIECES, max_size=6).map("".join), OBJECTS.map(json.dumps), VALUES, OBJECTS
)


def numbers(verdict: Mapping[str, Any] | None) -> list[float]:
    """Return the values of a verdict."""
    return [float(value) for value in (verdict or {}).values()]


@pytest.mark.parametrize("name", BOUNDED)
@given(reply=REPLIES)
@example(reply=None)
@example(reply="GRADE: " + "9" * 5000)
@example(reply="GRADE: 8 out of 100")
@example(reply=json.dumps(dict.fromkeys(GRADES.values(), 50)))
def test_verdicts_in_range(name: str, reply: Any) -> None:
    """The values of a verdict are from 0 to 1."""
    assert all(0 <= value <= 1 for value in numbers(BOUNDED[name](reply)))


@pytest.mark.parametrize("name", OFFICIAL)
@given(reply=REPLIES)
@example(reply=None)
@example(reply='{"fluency": "' + "a" * 1000 + '", "correctness": 9999999999}')
@example(reply='{"fluency": ' + "9" * 5000 + ', "correctness": 1}')
def test_official_verdicts(name: str, reply: Any) -> None:
    """The values of an official verdict are finite, so that a file can have them."""
    assert all(map(math.isfinite, numbers(OFFICIAL[name](reply))))


@given(REPLIES)
def test_aa_lcrs_request(reply: Any) -> None:
    """AA-LCR's parser, which is made with the request, accepts only the official replies."""
    record = {"question": "q", "references": ["a"], "prediction": "a"}
    (request,) = (
        VerdictAnnotator.__new__(VerdictAnnotator)
        .questions("questions", record)
        .values()
    )
    assert request.parse(reply) == (
        {"judge_score": float(reply == "CORRECT")}
        if reply in ("CORRECT", "INCORRECT")
        else None
    )


def test_a_parser_that_fails() -> None:
    """If a parser fails, another reply is requested, and the text of the last reply is kept."""

    class Client(PlainClient):
        def make_request(self, request: Any) -> Any:
            return answered(f"reply {request.random}", cached=False)

    def parse(reply: str) -> dict[str, float]:
        return {"score": {"0": 0.0}["1" if reply.endswith(".0") else "0"]}

    judge = make_judge("longctx/lexical", Client())
    reply = judge.ask(JudgeRequest("p", parse, 16, 0.0, 1.0, None))
    assert reply.verdict == {"score": 0.0}
    assert reply.text == "reply longctx/lexical#0.1"


def test_a_jury_of_two() -> None:
    """Two judges have a mean, a score each and a spread; a lone verdict of them has no spread, and a lone judge none of these."""

    def score(reply: str) -> dict[str, float]:
        return {"judge_score": float(reply)} if reply else {}

    def scores(**replies: str) -> dict[str, float]:
        return judge_scores({"jury": {"replies": replies}}, "judge_score", score)

    both = {"judge_score": 0.75, "judge_score_strict": 0.75, "judge_spread": 0.5}
    assert scores(a="1", b="0.5") == {
        **both,
        "judge_score:a": 1.0,
        "judge_score:b": 0.5,
    }
    assert scores(a="1", b="") == {
        "judge_score": 1.0,
        "judge_score_strict": 1.0,
        "judge_score:a": 1.0,
    }
    assert scores(a="1") == {"judge_score": 1.0, "judge_score_strict": 1.0}
    assert scores(a="", b="") == {"judge_score_strict": 0.0}
