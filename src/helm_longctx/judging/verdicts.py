"""What replies of one or several judges are worth together; it knows no HELM."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from helm_longctx.protocol.shapes import Shape, is_text
from helm_longctx.protocol.task import Record, Scores

ANSWER = "answer"
"""The one part of what a judge is asked where there are no several."""

BY_JUDGE = ":"
"""In the names of statistics between a score and the judge of a jury who gave it."""


def _is_reply(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else [value]
    return all(part is None or is_text(part) for part in parts)


def _is_jury(value: Any) -> bool:
    replies = value.get("replies") if isinstance(value, dict) else None
    return value == {} or (isinstance(replies, dict) and all(map(_is_reply, replies.values())))


REPLIES = {
    "judge": Shape("a judge's reply, or an object of its replies by part", _is_reply),
    "jury": Shape("an object with 'replies', an object of replies by judge", _is_jury),
}
"""What a scorer reads of the record of a judged answer."""


def judge_scores(record: Record, headline: str, worth: Callable[[Any], Scores]) -> Scores:
    """What a `judge`'s replies are worth, or the mean over a `jury` of those that gave a verdict.

    Args:
        headline: of a jury it is also given strictly, 0 where no judge gave a verdict, and by judge.
        worth: of one judge's replies.
    """
    if not record.get("jury"):
        return worth(record.get("judge"))
    each = {judge: worth(replies) for judge, replies in record["jury"]["replies"].items()}
    given = {judge: scores for judge, scores in each.items() if headline in scores}
    names = dict.fromkeys(name for scores in given.values() for name in scores)
    mean = {name: fmean(scores[name] for scores in given.values() if name in scores) for name in names}
    mean[f"{headline}_strict"] = mean.get(headline, 0.0)
    if len(each) > 1:
        by_judge = {f"{headline}{BY_JUDGE}{judge}": scores[headline] for judge, scores in given.items()}
        spread = max(by_judge.values()) - min(by_judge.values()) if len(given) > 1 else None
        mean |= by_judge if spread is None else {**by_judge, "judge_spread": spread}
    return mean
