"""What a language model's verdicts on answers and summaries are worth; who asks it is not this module's business.

Source: princeton-nlp/HELMET at 4526dfb, scripts/eval_gpt4_longqa.py and scripts/eval_gpt4_summ.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from helm_longctx.core.task import Scores

ANSWER_METRICS = ("judge_score", "judge_fluency")
SUMMARY_METRICS = ("judge_f1", "judge_recall", "judge_precision", "judge_fluency")


def judged_answer(reply: Any) -> Scores:
    """Fluency (0 or 1) times correctness (0 to 3), over 3; nothing if the reply cannot be read."""
    verdict = _object(reply)
    fluency, correctness = (_number(verdict, name) for name in ("fluency", "correctness"))
    if fluency is None or correctness is None:
        return {}
    return {"judge_score": fluency * correctness / 3, "judge_fluency": fluency}


def judged_summary(replies: Any, keypoints: Sequence[str]) -> Scores:
    """Key points that a summary has, sentences of it that are right, and their F1 if it is fluent.

    Recall and precision can be above 1, as in the official code; nothing if one of the three replies cannot be read.
    """
    if not isinstance(replies, Mapping):
        return {}
    read = {name: _object(replies.get(name), fenced=True) for name in _COUNTS}
    counts = {name: _number(read[reply], name) for reply, names in _COUNTS.items() for name in names}
    fluency, found, right, sentences = (counts[name] for name in ("fluency", "recall", "precision", "sentence_count"))
    if fluency is None or found is None or right is None or sentences is None:
        return {}
    recall = found / len(keypoints) if keypoints else 0.0
    precision = right / sentences if sentences > 0 else 0.0
    f1 = fluency * 2 * (recall * precision) / (recall + precision) if recall + precision > 0 else 0.0
    return {"judge_f1": f1, "judge_recall": recall, "judge_precision": precision, "judge_fluency": fluency}


_COUNTS = {"fluency": ("fluency",), "recall": ("recall",), "precision": ("precision", "sentence_count")}


def _object(reply: Any, fenced: bool = False) -> Any:
    """The last `{…}` without another in it; where it is no JSON, and `fenced`, what stands between ```json and ```."""
    found = re.findall(r"\{.*?\}", reply, re.DOTALL) if isinstance(reply, str) else []
    verdict = _parsed(found[-1]) if found else None
    if found and verdict is None and fenced:
        blocks = re.findall(r"(?:```json)(.+)(?:```)", reply, re.DOTALL)
        verdict = _parsed(blocks[-1]) if blocks else None
    return verdict


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _number(verdict: Any, name: str) -> float | None:
    value = verdict.get(name) if isinstance(verdict, Mapping) else None
    return value if isinstance(value, int | float) else None
