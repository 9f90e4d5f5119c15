"""Scores answers by simple metrics, and reads a judge's grade. The best reference counts."""

import re
from collections.abc import Callable
from typing import Any

from helm_longctx.benchmarks.any_jsonl.prompts import JUDGE as JUDGE_PROMPT
from helm_longctx.tasks import Judgement, Record, Scores
from helm_longctx.tasks.judge_scores import judge_scores
from helm_longctx.tasks.words import english_words, f1, rouge_l

BEST_GRADE = 10

# The whole last line must be the verdict: a grade anywhere else can be a quotation from the answer.
_VERDICT = re.compile(r"GRADE: *([0-9]{1,2})(?: ?(?:/|out of) ?10)?\.?")
_EMPHASIS = str.maketrans("", "", "*_`#")
"""Signs of Markdown, which some judges put around their verdict."""


def _simplify(text: str) -> str:
    return " ".join(text.lower().split())


COMPARE: dict[str, Callable[[str, str], float]] = {
    "contains": lambda output, reference: float(_simplify(reference) in _simplify(output)),
    "exact_match": lambda output, reference: float(english_words(output) == english_words(reference)),
    "f1": lambda output, reference: f1(english_words(output), english_words(reference)),
    "rouge_l": rouge_l,
}
"""The metrics by name: (output, reference) → 0 to 1."""


def score(record: Record) -> Scores:
    """Return all metrics that need no judge; empty without references."""
    if not record["references"]:
        return {}
    output = record["prediction"]
    return {
        name: max(compare(output, reference) for reference in record["references"]) for name, compare in COMPARE.items()
    }


def score_judged(record: Record) -> Scores:
    """Return the judge's grade, or the mean of a jury's grades, and the metrics that need no judge."""
    return {**score(record), **judge_scores(record, "judge_score", read_grade)}


def read_grade(reply: Any) -> Scores:
    """Return the grade in the last line of a reply, 0 to 1; empty unless the line is `GRADE: n`, also as `8/10`."""
    text = reply.rstrip() if isinstance(reply, str) else ""
    last = text[text.rfind("\n") + 1 :].translate(_EMPHASIS).strip()
    grade = _VERDICT.fullmatch(last)
    return {"judge_score": int(grade[1]) / BEST_GRADE} if grade and int(grade[1]) <= BEST_GRADE else {}


def judge_prompt(record: Record) -> str:
    """Make the judge's prompt."""
    references = "\n".join(f"- {reference}" for reference in record["references"]) or "(none)"
    return JUDGE_PROMPT.format_map({**record, "references": references})


JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_grade(reply),
    lambda record: f"{JUDGE_PROMPT}\0{record['rubric']}",
    max_tokens=1024,
)
