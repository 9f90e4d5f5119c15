"""Makes the judge's prompt and reads its verdict.

Source: Tongyi-Zhiwen/CorpusQA at f5b5764, src/eval.py (`extract_answer`, `evaluate_one`). A record has the reply of a
judge in `judge`, or the replies of several in `jury`.
"""

import re
from functools import partial
from typing import Any

from helm_longctx.benchmarks.corpusqa import prompts
from helm_longctx.tasks import Judgement, Record, Scores
from helm_longctx.tasks.judge_scores import judge_scores

JUDGE = "together/deepseek-v3"
"""The official judge: `deepseek-v3` of DashScope, which HELM does not have. This is HELM's deployment of the model."""
JUDGE_BUDGET = 4096
"""The judge's output budget in tokens. The official code sets none."""

_ANSWER = re.compile(r"The answer is: (.*)")


def find_answer(output: str) -> str:
    """Return the rest of the line after the first `The answer is: `, or else the whole output."""
    match = _ANSWER.search(output.strip())
    return match[1].strip() if match else output.strip()


def judge_prompt(record: Record) -> str:
    """Make the user turn of the judge's prompt."""
    answer = find_answer(record["prediction"])
    return prompts.JUDGE.format(problem=record["question"], answer_1=answer, answer_2=record["references"][0])


def read_verdict(reply: Any) -> Scores:
    """Return whether a reply has [[YES]] and no [[NO]]; nothing if it is no text."""
    return {"judge_score": float("[[YES]]" in reply and "[[NO]]" not in reply)} if isinstance(reply, str) else {}


score = partial(judge_scores, headline="judge_score", score=read_verdict)
"""Computes the verdict, or the mean of a jury's verdicts; nothing if there is none."""

JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_verdict(reply),
    prompts.SYSTEM + prompts.JUDGE,
    max_tokens=JUDGE_BUDGET,
    system=prompts.SYSTEM,
)
