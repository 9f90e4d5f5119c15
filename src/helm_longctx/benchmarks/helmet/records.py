"""The shapes of the fields that HELMET's scorers read from a record, in addition to prediction and references."""

from typing import Any

from helm_longctx.tasks.judge_scores import REPLIES
from helm_longctx.tasks.task import TEXTS, Shape, are_all, is_number, is_whole

HIGHEST_GRADE = 1000
"""trec_eval keeps a table with an entry for each grade; a huge grade would exhaust the memory."""

_CITED = ("recall", "precision", "recall_shown", "precision_shown")


def _are_judged_citations(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    numbers = [value[name] for name in (*_CITED, "hidden") if value.get(name) is not None]
    whole = isinstance(value.get("official"), bool) and "hidden" in value
    return all(map(is_number, numbers)) and (whole or "judge" not in value)


SUMMARY = {**REPLIES, "keypoints": TEXTS}
RANKING = {
    "qrels": Shape(
        f"an object of grades (whole numbers from 0 to {HIGHEST_GRADE}) by passage id",
        lambda value: (
            isinstance(value, dict) and all(is_whole(grade) and 0 <= grade <= HIGHEST_GRADE for grade in value.values())
        ),
    ),
    "passages": Shape("a whole number", is_whole),
}
_CITATIONS = {"citations": Shape("the result of a judge of citations", _are_judged_citations)}
_PAIRS = Shape(
    "a list of objects with 'short_answers', a list of texts",
    are_all(lambda pair: isinstance(pair, dict) and TEXTS.fits(pair.get("short_answers"))),
)
CITATIONS = {
    "asqa": {**_CITATIONS, "qa_pairs": _PAIRS},
    "qampari": {**_CITATIONS, "answers": Shape("a list of lists of texts", are_all(TEXTS.fits))},
}
"""The shapes of the citation tasks, by data set."""
