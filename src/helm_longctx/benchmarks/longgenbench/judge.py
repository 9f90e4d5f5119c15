"""HELM's annotator for LongGenBench's judge.

Source: mozhu621/LongGenBench at 62c0e86, Evalution/eval.py (`evaluate_accuracy`, sampling parameters).
"""

from __future__ import annotations

from helm_longctx.benchmarks.longgenbench.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.benchmarks.longgenbench.scoring import JUDGE, SEPARATOR, is_yes, judge_prompts
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.task import Record


class CheckAnnotator(AnswerAnnotator):
    """Asks, for each entry that must mention something, whether it does."""

    official = JUDGE
    has_verdict_without_questions = True

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make a request for each check of an entry that the text has."""
        return {
            part: JudgeRequest(
                prompt=prompt,
                parse=lambda reply: {"met": float(is_yes(reply))},
                max_tokens=50,
                temperature=0.95,
                top_p=0.95,
                seed=42,
                readings=1,
            )
            for part, prompt in judge_prompts(record).items()
        }

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the judge's template."""
        return digest(JUDGE_PROMPT)

    @staticmethod
    def typical_answer(record: Record, tokens: int) -> str:
        """Return a text with all entries."""
        words = "word " * (tokens // record["number"])
        return "".join(f"{SEPARATOR} {record['type']} {n}: {words}" for n in range(1, record["number"] + 1))
