"""AA-LCR's judge: what it is asked, what its reply is worth, and the mean over repeats.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`judge` and `main_async`). A record has `judge`, the
judge's reply, or `jury` with several.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.judging.scores import judge_scores
from helm_longctx.protocol.task import Record, Scores

METRICS = ("judge_score", "judge_score_strict", "judge_spread")
JUDGE = "together/qwen3-235b-a22b-instruct-2507-fp8"
"""The judge by default. The wheel names a Qwen 235B without its version; this is HELM's deployment of such a model."""
JUDGE_BUDGET = 1024
"""Output tokens that the judge may write."""

_VERDICTS = {"CORRECT": 1.0, "INCORRECT": 0.0}


def judge_prompt(question: str, official_answer: str, candidate_answer: str) -> str:
    """The judge's user turn."""
    return JUDGE_PROMPT.format(question=question, official_answer=official_answer, candidate_answer=candidate_answer)


def read_verdict(reply: object) -> float | None:
    """1 for the reply CORRECT, 0 for INCORRECT; None for any other, even with white space around."""
    return _VERDICTS.get(reply) if isinstance(reply, str) else None


def score(record: Record) -> Scores:
    """The verdict, of a jury the mean of its verdicts; nothing without one."""
    return judge_scores(record, "judge_score", _worth)


def _worth(reply: Any) -> Scores:
    verdict = read_verdict(reply)
    return {} if verdict is None else {"judge_score": verdict}


def mean_over_questions(verdicts: Sequence[Sequence[float | None]]) -> float | None:
    """The official score: the mean over questions of each one's mean over its repeats.

    Repeats without a verdict and questions without any are left out.

    Args:
        verdicts: of each question, one for each repeat.
    """
    means = [fmean(given) for question in verdicts if (given := [v for v in question if v is not None])]
    return fmean(means) if means else None
