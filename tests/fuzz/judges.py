"""Replies of judges: each gives a verdict of finite numbers or none, and never an error."""

from __future__ import annotations

import random
from functools import cache
from typing import Any
from unittest import mock

from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.benchmarks.helmet import scoring
from helm_longctx.benchmarks.helmet.verdicts import (
    PARTS,
    read_answer,
    read_part,
    score_answer,
    score_summary,
)
from helm_longctx.judging import entailment
from helm_longctx.judging.judge import Judge, JudgeReply, JudgeRequest
from helm_longctx.run_settings import JUDGE_WAIT
from tests.benchmarks.helmet.fabricate_replies import answer_replies, summary_replies
from tests.fuzz.cases import Kind, check_finite
from tests.fuzz.mutate import ODD_VALUES, mutated_text
from tests.support.fabricated import fabricated

HOSTILE = (
    "{" * 100_000,
    "}" * 100_000,
    "{}" * 50_000,
    '{"fluency":' * 5000,
    "```json" * 10_000,
    "1" * 100_000,
    "{" * 50_000 + "}" * 50_000,
)


@cache
def _known() -> list[str]:
    summaries = [
        reply
        for case in summary_replies()
        for reply in (case.fluency, case.recall, case.precision)
    ]
    return [reply for reply in (*answer_replies(), *summaries) if reply is not None]


def _reply(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.02:
        return rng.choice(HOSTILE)
    if kind < 0.1:
        return rng.choice(ODD_VALUES)
    text = rng.choice(_known())
    for _ in range(rng.randint(0, 4)):
        text = mutated_text(text, rng)
    return text


def _check_verdict(verdict: Any) -> None:
    assert verdict is None or isinstance(verdict, dict), verdict
    check_finite(verdict)


def _answers(rng: random.Random) -> None:
    reply = _reply(rng)
    _check_verdict(read_answer(reply))
    check_finite(score_answer(reply))
    jury = {
        "replies": {
            f"judge{number}": _reply(rng) for number in range(rng.randint(1, 3))
        }
    }
    check_finite(
        scoring.score_narrativeqa(
            {"prediction": "a", "references": ["a"], "jury": jury}
        )
    )


def _summaries(rng: random.Random) -> None:
    replies = {part: _reply(rng) for part in PARTS}
    for part, reply in replies.items():
        _check_verdict(read_part(part, reply))
    check_finite(
        score_summary(rng.choice((replies, _reply(rng))), ["point"] * rng.randint(0, 3))
    )


def _grades(rng: random.Random) -> None:
    good = rng.choice(
        [
            reply
            for replies in fabricated("REPLIES").values()
            for reply in replies
            if reply
        ]
    )
    reply = rng.choice((_reply(rng), mutated_text(good, rng)))
    for read_reply in fabricated("read_reply").values():
        grades = read_reply(reply) or {}
        assert all(0 <= value <= 1 for value in grades.values()), reply


def _entailments(rng: random.Random) -> None:
    reply = _reply(rng)
    if isinstance(reply, str):
        _check_verdict(entailment._parse_reply(reply))


class _OddClient(Client):
    """A client whose results have any form."""

    def __init__(self, rng: random.Random):
        self._rng = rng

    def make_request(self, request: Request) -> RequestResult:
        kind = self._rng.random()
        rng = self._rng
        if kind < 0.1:
            raise rng.choice((ValueError, KeyError, RuntimeError, OSError))(
                str(_reply(rng))
            )
        outputs = [
            GeneratedOutput(
                _reply(rng),
                0.0,
                [],
                finish_reason=rng.choice((None, {}, {"reason": "length"})),
            )
        ]
        error = rng.choice(
            (
                None,
                "",
                "Content blocked by OpenAI filter",
                "status code 400",
                "KeyError: 'x'",
            )
        )
        time = rng.choice((None, 0.1))
        return RequestResult(
            kind < 0.7,
            [],
            rng.choice((outputs, [])),
            rng.random() < 0.5,
            time,
            error=error,
        )


def _calls(rng: random.Random) -> None:
    with mock.patch.dict("os.environ", {JUDGE_WAIT: "0.000001"}):
        judge = Judge("tests/odd", "tests/odd", _OddClient(rng))
        parse = rng.choice((read_answer, entailment._parse_reply))
        check_reply(judge.ask(JudgeRequest("prompt", parse, 16, 0.0, 1.0, 0)))


def check_reply(reply: JudgeReply) -> None:
    """Check that a judge's reply is a verdict of finite numbers, or the reason why there is none."""
    _check_verdict(reply.verdict)
    assert reply.verdict is None or reply.error is None
    assert reply.verdict is not None or reply.error, "neither a verdict nor an error"


_READERS = {
    "answers": _answers,
    "summaries": _summaries,
    "grades": _grades,
    "entailments": _entailments,
    "calls": _calls,
}
KIND = Kind(
    "judges", tuple(_READERS), 10_000, lambda target, rng: _READERS[target](rng)
)
