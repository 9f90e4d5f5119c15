"""Makes the judge's prompt and reads its grade.

Source: Tencent-Hunyuan/CL-bench at 360d60f, eval.py (`build_rubrics_text`, `call_judge_api`, `process_single_item`,
`calculate_statistics`). A record has the question's `rubrics` and `category`, and the reply of a judge in `judge`, or
the replies of several in `jury`.
"""

import json
from typing import Any

from helm_longctx.benchmarks.cl_bench import prompts
from helm_longctx.tasks import Judgement, Record, Scores
from helm_longctx.tasks.judge_scores import judge_scores

JUDGE = "openai/gpt-5.1-2025-11-13"
"""The official judge: `gpt-5.1`."""

CATEGORIES = {
    "Domain Knowledge Reasoning": "domain",
    "Rule System Application": "rules",
    "Procedural Task Execution": "procedures",
    "Empirical Discovery & Simulation": "discovery",
    "Communication & Social Interactions": "communication",
    "Fragmented Information & Revisions": "fragments",
    "Behavioral Records & Activity Trails": "records",
}
"""The names of the metrics by category; the last three are those of CL-bench Life."""


def list_rubrics(rubrics: list[Any]) -> str:
    """Return the criteria as a list, with the numbers that they have before empty ones are left out."""
    texts = [each.get("rubric_criteria", "") if isinstance(each, dict) else str(each) for each in rubrics]
    lines = [f"{number}. {text.strip()}" for number, text in enumerate(texts, 1) if text.strip()]
    return "\n".join(lines) or prompts.NO_RUBRICS


def judge_prompt(record: Record) -> str | dict[str, str]:
    """Make the judge's prompt; nothing is asked about an answer without text."""
    if not record["prediction"].strip():
        return {}
    return prompts.JUDGE.format(rubrics=list_rubrics(record["rubrics"]), answer=record["prediction"])


def read_grade(reply: Any) -> Scores:
    """Return 1 if a reply's overall score is 1, and 0 for another; nothing if the reply is no JSON object with one."""
    if not isinstance(reply, str):
        return {}
    text = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        grade = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(grade, dict) or "Overall Score" not in grade:
        return {}
    return {"judge_score": float(grade["Overall Score"] == 1)}


def score(record: Record) -> Scores:
    """Return the grade, also under the name of the question's category. A judged answer without text has grade 0."""
    has_text = bool(record["prediction"].strip())

    def read(reply: Any) -> Scores:
        return read_grade(reply) if has_text else {} if reply is None else {"judge_score": 0.0}

    scores = judge_scores(record, "judge_score", read)
    name = CATEGORIES.get(record.get("category", ""))
    return {**scores, f"judge_score_{name}": scores["judge_score"]} if name and "judge_score" in scores else scores


# The official code asks three times until a reply has a score.
JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_grade(reply),
    lambda record: prompts.JUDGE + list_rubrics(record["rubrics"]),
    # The budget has room for reasoning. The official code sets none.
    max_tokens=16384,
    temperature=1.0,
    readings=3,
    counts_silence=True,
)
