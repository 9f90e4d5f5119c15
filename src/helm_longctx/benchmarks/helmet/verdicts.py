"""Computes scores from a language model's verdicts on answers and summaries.

Source: princeton-nlp/HELMET at 4526dfb, scripts/eval_gpt4_longqa.py and scripts/eval_gpt4_summ.py.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helm_longctx.tasks import MetricValues

JUDGE = "openai/gpt-4o-2024-05-13"
"""The official judge."""

_LARGEST = 2**53
"""The largest integer that every JSON parser reads exactly."""

_ANSWER = ("fluency", "correctness")
ANSWER_METRICS = ("judge_score", "judge_fluency", "judge_score_strict", "judge_spread")
SUMMARY_METRICS = (
    "judge_f1",
    "judge_recall",
    "judge_precision",
    "judge_fluency",
    "judge_f1_strict",
    "judge_spread",
)

PARTS = {
    "fluency": ("fluency",),
    "recall": ("recall",),
    "precision": ("precision", "sentence_count"),
}
"""The parts of a summary's judgement, each a call of the judge, and the numbers in each reply."""


def read_answer(reply: Any) -> dict[str, float] | None:
    """Read fluency (0 or 1) and correctness (0 to 3) from a reply, or None if one of them is missing."""
    verdict = _object(reply)
    if "judge_score" not in _scores(lambda: _answer(verdict)):
        return None
    return _numbers(verdict, _ANSWER)


def read_part(part: str, reply: Any) -> dict[str, float] | None:
    """Read the numbers of one of the `PARTS` from a reply, or None if no score can be computed from them."""
    verdict = _object(reply, fenced=True)
    if not _scores(lambda: {part: _part_score(part, verdict)}):
        return None
    return _numbers(verdict, PARTS[part])


def score_answer(reply: Any) -> MetricValues:
    """Compute fluency times correctness / 3; no score if the reply cannot be parsed or the result is not finite."""
    scores = _scores(lambda: _answer(_object(reply)))
    return scores if "judge_score" in scores else {}


def score_summary(replies: Any, keypoints: Sequence[str]) -> MetricValues:
    """Compute recall of key points, precision of sentences, and their F1. F1 is 0 if the summary is not fluent.

    There is no score if one of the three replies cannot be parsed. As in the official code, recall and precision can be
    above 1. Python's JSON parser accepts NaN and infinity; the scores then follow the official script: if recall is
    NaN, F1 is 0, because no comparison with NaN is true. Scores that are not finite are left out.
    """

    def compute() -> MetricValues:
        fluency, points, precision = (
            _part_score(part, _object(replies[part], fenced=True)) for part in PARTS
        )
        recall = points / len(keypoints) if keypoints else 0
        f1: float = 0
        # `fluency` is 0 or 1; 0 makes the whole score 0 (HELMET scripts/eval_gpt4_summ.py).
        if recall + precision > 0:
            f1 = fluency * 2 * (recall * precision) / (recall + precision)
        return {
            "judge_f1": f1,
            "judge_recall": recall,
            "judge_precision": precision,
            "judge_fluency": fluency,
        }

    return _scores(compute)


def _answer(verdict: Any) -> MetricValues:
    fluency, correctness = (verdict[name] for name in _ANSWER)
    # Python would repeat a text or a list as often as the other field says, and fill the memory.
    if not all(isinstance(value, int | float) for value in (fluency, correctness)):
        raise TypeError("the official script ends in an error")
    return {"judge_score": fluency * correctness / 3, "judge_fluency": fluency}


def _part_score(part: str, verdict: Any) -> float:
    if part != "precision":
        return verdict[part]
    right, sentences = (verdict[name] for name in PARTS[part])
    return right / sentences if sentences > 0 else 0


def _numbers(verdict: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Return the fields of a verdict that are numbers, without those beyond `_LARGEST`.

    A score can exist although a field is not a number: for a summary with 0 sentences, the number of correct ones is
    not read.
    """
    numbers = {}
    for name in names:
        value = verdict[name]
        if isinstance(value, int | float) and abs(value) <= _LARGEST:
            numbers[name] = value
    return numbers


def _scores(compute: Callable[[], MetricValues]) -> MetricValues:
    """Return the finite scores that `compute` returns; none where the official script ends in an error."""
    try:
        scores = {}
        for name, value in compute().items():
            if math.isfinite(value):
                scores[name] = value
        return scores
    except (
        LookupError,
        TypeError,
        OverflowError,
    ):  # a missing or non-numeric field, or a number too large for a float
        return {}


def _object(reply: Any, fenced: bool = False) -> Any:
    """Parse the last JSON object of a reply: the last text from a `{` to the next `}`.

    If that is not JSON and `fenced` is true, the last block marked as JSON is parsed instead.
    """
    if not isinstance(reply, str):
        return None
    # The text after the last `}` is cut off: for each `{` there, the search would run to the end of the text.
    objects = re.findall(r"\{.*?\}", reply[: reply.rfind("}") + 1], re.DOTALL)
    verdict = _parse_json(objects[-1]) if objects else None
    if objects and verdict is None and fenced:
        # Greedy, so the block reaches to the last fence of the reply, as in the official script.
        blocks = re.findall(r"(?:```json)(.+)(?:```)", reply, re.DOTALL)
        verdict = _parse_json(blocks[-1]) if blocks else None
    return verdict


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
