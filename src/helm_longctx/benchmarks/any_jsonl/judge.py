"""HELM's annotator for the judge that grades by a user's rubric."""

from __future__ import annotations

from helm_longctx.benchmarks.any_jsonl.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.benchmarks.any_jsonl.scoring import read_grade
from helm_longctx.benchmarks.any_jsonl.tasks import JUDGE, RUBRIC_TASK
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.judging.judge import JudgeRequest, one_question
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.task import Record


class RubricAnnotator(AnswerAnnotator):
    """Asks for a grade by the criteria of rubric.txt."""

    official = JUDGE

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make the only request to the judge; the other metrics need none."""
        if task != RUBRIC_TASK:
            return {}
        references = "\n".join(f"- {reference}" for reference in record["references"]) or "(none)"
        prompt = JUDGE_PROMPT.format_map({**record, "references": references})
        return one_question(prompt, lambda reply: read_grade(reply) or None, max_tokens=1024)

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the judge's template and the user's criteria."""
        return digest(f"{JUDGE_PROMPT}\0{record['rubric']}")
