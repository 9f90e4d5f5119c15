"""HELM's annotator for HelloBench's judge.

Source: Quehry/HelloBench at d403282, llm_judge.py (`gpt4o_ckwise_evaluation`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from helm.benchmark.runner import get_benchmark_output_path

from helm_longctx.benchmarks.hellobench.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.benchmarks.hellobench.prompts import SYSTEM
from helm_longctx.benchmarks.hellobench.scoring import JUDGE, judge_prompt, score_reply
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.errors import InputError
from helm_longctx.judging.answer_judge import AnswerAnnotator
from helm_longctx.judging.availability import find_official_judge
from helm_longctx.judging.judge import JudgeRequest
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.judge_scores import ANSWER
from helm_longctx.tasks.task import Record


class ChecklistAnnotator(AnswerAnnotator):
    """Asks for a score of each item of an instruction's checklist."""

    official = JUDGE

    @classmethod
    def check(cls, judge: str, credentials: Mapping[str, Any] | None = None) -> None:
        """Fetch also NLTK's model of sentences if there is a judge, because its prompt needs it."""
        super().check(judge, credentials)
        has_judge = judge != "auto" or find_official_judge(cls.official, credentials or {})
        if credentials is not None and has_judge:
            ensure([SENTENCE_MODEL], DataRoot.find(get_benchmark_output_path()), "helm-longctx fetch hellobench")

    def questions(self, task: str, record: Record) -> dict[str, JudgeRequest]:
        """Make the only request to the judge.

        Raises:
            InputError: the record has no checklist, or NLTK's data is not installed.
        """
        checklists, weights = record.get("checklists"), record.get("weights")
        if not checklists or not weights:
            raise InputError("the record has no checklists or no weights")
        request = JudgeRequest(
            prompt=judge_prompt(record["question"], record["prediction"], checklists),
            parse=lambda reply: score_reply(weights, reply) or None,
            max_tokens=4096,
            temperature=0.8,
            top_p=1.0,
            seed=42,
            readings=3,
            system=SYSTEM,
        )
        return {ANSWER: request}

    def digest(self, task: str, record: Record) -> str:
        """Return the SHA-256 of the judge's prompts, the checklist and its weights."""
        return digest(json.dumps([SYSTEM, JUDGE_PROMPT, record["checklists"], record["weights"]]))
