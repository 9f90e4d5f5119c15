"""What a language model's verdicts on answers and summaries are worth; who asks it is not this module's business.

Source: princeton-nlp/HELMET at 4526dfb, scripts/eval_gpt4_longqa.py and scripts/eval_gpt4_summ.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helm_longctx.protocol.task import Scores

LARGEST = 2**53
"""Of whole numbers that every reader of JSON knows."""

_ANSWER = ("fluency", "correctness")
_OF_JURIES = ("judge_spread",)
ANSWER_METRICS = ("judge_score", "judge_fluency", "judge_score_strict", *_OF_JURIES)
SUMMARY_METRICS = ("judge_f1", "judge_recall", "judge_precision", "judge_fluency", "judge_f1_strict", *_OF_JURIES)

PARTS = {"fluency": ("fluency",), "recall": ("recall",), "precision": ("precision", "sentence_count")}
"""What a judge of summaries is asked one by one, and what each reply gives."""


def read_answer(reply: Any) -> dict[str, float] | None:
    """Fluency (0 or 1) and correctness (0 to 3) of an answer; None if the reply has not both."""
    verdict = _object(reply)
    return _numbers(verdict, _ANSWER) if "judge_score" in _scores(lambda: _answer(verdict)) else None


def read_part(part: str, reply: Any) -> dict[str, float] | None:
    """What a reply gives on one of the `PARTS` of a summary; None if that cannot be reckoned with."""
    verdict = _object(reply, fenced=True)
    return _numbers(verdict, PARTS[part]) if _scores(lambda: {part: _worth(part, verdict)}) else None


def score_answer(reply: Any) -> Scores:
    """Fluency times correctness, over 3; nothing if the reply cannot be read, or that is no finite number."""
    scores = _scores(lambda: _answer(_object(reply)))
    return scores if "judge_score" in scores else {}


def score_summary(replies: Any, keypoints: Sequence[str]) -> Scores:
    """Key points that a summary has, sentences of it that are right, and their F1 if it is fluent.

    Recall and precision can be above 1, as in the official code; nothing if one of the three replies cannot be read.
    Python reads NaN and infinity in JSON, and what the official script makes of them stands: with a NaN for recall F1
    is 0, as no comparison with NaN is true. A number that is not finite itself is left out.
    """
    return _scores(lambda: _summary({part: _object(replies[part], fenced=True) for part in PARTS}, len(keypoints)))


def _answer(verdict: Any) -> Scores:
    fluency, correctness = (verdict[name] for name in _ANSWER)
    return {"judge_score": fluency * correctness / 3, "judge_fluency": fluency}


def _summary(verdicts: Mapping[str, Any], keypoints: int) -> Scores:
    fluency, found, precision = (_worth(part, verdicts[part]) for part in PARTS)
    recall = found / keypoints if keypoints else 0
    f1 = fluency * 2 * (recall * precision) / (recall + precision) if recall + precision > 0 else 0
    return {"judge_f1": f1, "judge_recall": recall, "judge_precision": precision, "judge_fluency": fluency}


def _worth(part: str, verdict: Any) -> float:
    if part != "precision":
        return verdict[part]
    right, sentences = (verdict[name] for name in PARTS[part])
    return right / sentences if sentences > 0 else 0


def _numbers(verdict: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Those that are; of a summary without sentences, how many are right need not be one. Readers of JSON fail at more
    than `LARGEST`, which a score of 0 can come from."""
    values = {name: verdict[name] for name in names}
    return {name: value for name, value in values.items() if isinstance(value, int | float) and abs(value) <= LARGEST}


def _scores(reckon: Callable[[], Scores]) -> Scores:
    """What comes out where the official script makes numbers, but for those that no mean survives; else nothing."""
    try:
        return {name: value for name, value in reckon().items() if math.isfinite(value)}
    except (LookupError, TypeError, OverflowError):  # an absent name, another kind of value, more than a float holds
        return {}


def _object(reply: Any, fenced: bool = False) -> Any:
    """The last stretch from a `{` to the next `}`; where it is no JSON, and `fenced`, a block marked as JSON."""
    if not isinstance(reply, str):
        return None
    # Up to the last `}`, beyond which each of a thousand open braces would be looked after to the end.
    found = re.findall(r"\{.*?\}", reply[: reply.rfind("}") + 1], re.DOTALL)
    verdict = _parse_json(found[-1]) if found else None
    if found and verdict is None and fenced:
        blocks = re.findall(r"(?:```json)(.+)(?:```)", reply, re.DOTALL)
        verdict = _parse_json(blocks[-1]) if blocks else None
    return verdict


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
