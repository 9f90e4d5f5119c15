"""Scores from the replies of one or several judges. Imports no HELM."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from helm_longctx.tasks.benchmark import Metric
from helm_longctx.tasks.judgement import ANSWER as ANSWER
from helm_longctx.tasks.shapes import Shape, is_text
from helm_longctx.tasks.task import Record, Scores

TRUE_NLI = "google/t5_xxl_true_nli_mixture"
"""The official judge of citations, a model with 11 billion parameters."""

BY_JUDGE = ":"
"""Separator in the names of statistics between a score and the judge who gave it."""


def _is_reply(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else [value]
    return all(part is None or is_text(part) for part in parts)


def _is_jury(value: Any) -> bool:
    replies = value.get("replies") if isinstance(value, dict) else None
    # An annotator leaves an empty jury where nothing was judged.
    return value == {} or (isinstance(replies, dict) and all(map(_is_reply, replies.values())))


JUDGED = ("judge_score", "judge_score_strict", "judge_spread")
"""The metrics of a task whose main score is a judge's."""
STRICT = Metric(
    "judge_score_strict", "Judged score, strict", "The judged score, with 0 for an answer without a verdict."
)
SPREAD = Metric(
    "judge_spread",
    "Judges' spread",
    "Difference between the highest and the lowest score of an answer by a jury's judges.",
    lower_is_better=True,
)

REPLIES = {
    "judge": Shape("a judge's reply, or an object of its replies by part", _is_reply),
    "jury": Shape("an object with 'replies', an object of replies by judge", _is_jury),
}
"""The fields of a judged answer's record that a scorer reads."""


def judge_scores(record: Record, headline: str, score: Callable[[Any], Scores]) -> Scores:
    """Score the replies of a `judge`, or take the mean over the judges of a `jury` that gave a verdict.

    Args:
        record: has the replies of one judge under `judge`, or the replies of several judges under `jury`.
        headline: name of the main score. For a jury it is added as a strict score, which is 0 without any verdict,
            and for each judge of several.
        score: scores the replies of one judge; without a verdict the result lacks the headline.
    """
    if not record.get("jury"):
        return score(record.get("judge"))
    replies_by_judge = record["jury"].get("replies") or {}
    all_scores = {judge: score(replies) for judge, replies in replies_by_judge.items()}
    # Only judges with a verdict are in the mean: a failed call says nothing about the answer.
    valid = {judge: scores for judge, scores in all_scores.items() if headline in scores}
    names = dict.fromkeys(name for scores in valid.values() for name in scores)
    mean = {name: fmean(scores[name] for scores in valid.values() if name in scores) for name in names}
    # The strict score is 0 where no judge gave a verdict, as if the answer were wrong; the plain score is then absent.
    mean[f"{headline}_strict"] = mean.get(headline, 0.0)
    if len(all_scores) > 1:
        by_judge = {f"{headline}{BY_JUDGE}{judge}": scores[headline] for judge, scores in valid.items()}
        # A spread needs two verdicts.
        spread = max(by_judge.values()) - min(by_judge.values()) if len(valid) > 1 else None
        mean |= by_judge if spread is None else {**by_judge, "judge_spread": spread}
    return mean
