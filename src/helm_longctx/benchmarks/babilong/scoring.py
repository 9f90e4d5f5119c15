"""BABILong's metric: whether the first sentence of the output has the right label and no other.

Source: booydar/babilong at 7a6efee, babilong/metrics.py (`TASK_LABELS`, `preprocess_output`, `compare_answers`).
"""

from collections.abc import Collection

from helm_longctx.tasks.task import Record, Scores

_PLACES = frozenset({"bathroom", "bedroom", "garden", "hallway", "kitchen", "office"})
_YES_NO = frozenset({"no", "yes"})
_ROUTES = frozenset(f"{first},{second}" for first in "nesw" for second in "nesw") - {"n,s", "s,n", "e,w", "w,e"}

LABELS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("qa1", "qa2", "qa3", "qa4", "qa11", "qa12", "qa13"), _PLACES),
    "qa5": frozenset({"bill", "fred", "jeff", "mary", "apple", "football", "milk"}),
    **dict.fromkeys(("qa6", "qa9", "qa17", "qa18"), _YES_NO),
    "qa7": frozenset({"none", "one", "three", "two"}),
    "qa8": frozenset({"apple", "football", "milk", "nothing"}),
    "qa10": frozenset({"maybe", "no", "yes"}),
    "qa14": frozenset({"bedroom", "cinema", "kitchen", "office", "park", "school"}),
    "qa15": frozenset({"cat", "mouse", "sheep", "wolf"}),
    "qa16": frozenset({"gray", "green", "white", "yellow"}),
    "qa19": _ROUTES,
    "qa20": frozenset({"bedroom", "bored", "garden", "hungry", "kitchen", "thirsty", "tired"}),
}
"""The possible answers of each task, in lower case."""

_ENDS = (".", "<context>", "<example>")
"""The scored part of an output ends before these texts."""

_LONGEST_ROUTE = len("n,e")


def score_label(record: Record, labels: Collection[str]) -> Scores:
    """Return whether the output has exactly the labels of the target.

    Labels in the question are ignored, because they are never the answer. A target with a comma, as in qa8, has several
    labels, except the routes of qa19, which are labels themselves. Without the question there is no score.
    """
    if "question" not in record:
        return {}
    target = next(iter(record["references"]), "").lower()
    asked = {label for label in labels if label in record["question"].lower()}
    named = {label for label in labels if label in _scored_part(record["prediction"])} - asked
    parts = target.split(",") if "," in target and len(target) > _LONGEST_ROUTE else [target]
    return {"accuracy": float(len(named) == len(parts) and named.issuperset(parts))}


def _scored_part(output: str) -> str:
    text = output.lower()
    for end in _ENDS:
        text = text.partition(end)[0]
    return text
