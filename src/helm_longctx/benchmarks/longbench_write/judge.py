"""HELM's annotator for LongBench-Write's judge.

Source: THUDM/LongWriter at 3fcfdff, evaluation/eval_quality.py (`get_response_gpt4`, `process_data`).
"""

from __future__ import annotations

from helm_longctx.benchmarks.longbench_write.data import RUBRIC
from helm_longctx.benchmarks.longbench_write.scoring import JUDGE, judge_prompt, read_grades
from helm_longctx.errors import InputError
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.judging.judge import JudgeRequest, one_question
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.task import Record


class QualityAnnotator(AnswerAnnotator):
    """Asks for grades of a text in six dimensions."""

    official = JUDGE

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make the only request to the judge.

        Raises:
            InputError: the run has no rubric.
        """
        if "rubric" not in record:
            raise InputError(f"there is no {RUBRIC.path}: get it with helm-longctx fetch longbench_write")
        prompt = judge_prompt(record["rubric"], record["question"], record["prediction"])
        return one_question(prompt, lambda reply: read_grades(reply) or None, 1024, temperature=0.5, readings=5)

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the rubric."""
        return digest(record["rubric"])
