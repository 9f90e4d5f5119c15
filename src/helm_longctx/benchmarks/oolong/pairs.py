"""OOLONG-Pairs: twenty questions that ask for all pairs of users with certain labels, on the texts of `trec_coarse`.

Source: arXiv 2512.24601v2, appendix D.1 (questions, lengths) and section 3.1 (F1 over the answer). The authors have
published no code, so the reading of an answer is ours; the README has what was chosen.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from math import comb

from helm_longctx.benchmarks.oolong.data import LABELLED_TEXT, TEXT, read_entries
from helm_longctx.benchmarks.oolong.prompts import PAIR_CONDITIONS, PAIR_QUESTION
from helm_longctx.tasks import DataRoot, Example, InputError, JsonLines, Record, Scores, Settings, Task
from helm_longctx.tasks.sampling import take_sample

DATASET = "trec_coarse"
LABELS = ("description and abstract concept", "entity", "human being", "numeric value", "location", "abbreviation")

_LABEL = rf"(?:an? )?({'|'.join(LABELS)})"
_COUNT = re.compile(rf"(exactly )?(one|two)(?: instances?)? with {_LABEL}(?: or {_LABEL})?")
_DATES = re.compile(rf"all instances that are {_LABEL} for both users must be (after|before) (\w+ \d+, \d+)")
_PAIR = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.ASCII)

_Users = Mapping[str, Sequence[tuple[str, date]]]
"""The labels and dates of each user's texts."""


@take_sample
def load_pairs(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield the twenty questions on the first text, then those on the second.

    Raises:
        InputError: the texts with and without labels are not the same.
    """
    plain, labelled = task.paths(settings.length)
    rows = zip(
        JsonLines(root / plain, {"dataset": str, TEXT: str}),
        JsonLines(root / labelled, {LABELLED_TEXT: str}),
        strict=True,
    )
    seen: set[str] = set()
    for row, labelled_row in rows:
        window = str(row.get("context_window_id"))
        if row["dataset"] != DATASET or window in seen:
            continue
        seen.add(window)
        users = _read_users(labelled_row[LABELLED_TEXT])
        if window != str(labelled_row.get("context_window_id")) or not users:
            raise InputError(f"{row}: the text with labels is another one, or has no lines with a label")
        for number, condition in enumerate(PAIR_CONDITIONS, 1):
            fields = {"context": row[TEXT], "question": PAIR_QUESTION.format(condition=condition)}
            references = [", ".join(sorted(role, key=int)) for role in find_roles(condition, users)]
            yield Example(f"{window}-{number}", fields, references, "hub", group=window)


def _read_users(text: str) -> _Users:
    users = defaultdict(list)
    for entry in read_entries(text):
        if entry.label:
            users[entry.user].append((entry.label, datetime.strptime(entry.date, "%b %d, %Y").date()))
    return users


def find_roles(condition: str, users: _Users) -> tuple[set[str], set[str]]:
    """Return the users who can be the one of a pair, and those who can be the other.

    Args:
        condition: what the question asks for, in its words.
    """
    first, _, second = condition.partition(", and the other user has ")
    found = [{user for user, texts in users.items() if _fits(role, texts)} for role in (first, second or first)]
    return found[0], found[1]


def _fits(role: str, texts: Sequence[tuple[str, date]]) -> bool:
    for exactly, number, *labels in _COUNT.findall(role):
        count, wanted = sum(label in labels for label, _ in texts), 1 + (number == "two")
        if count != wanted if exactly else count < wanted:
            return False
    for name, order, day in _DATES.findall(role):
        limit = datetime.strptime(day, "%B %d, %Y").date()
        if any(label == name and not (when > limit if order == "after" else when < limit) for label, when in texts):
            return False
    return True


def score_pairs(record: Record) -> Scores:
    """Return the F1 of the pairs in an answer, and whether it is 1; empty if the record has no references.

    The references are the users of both roles. Their pairs are counted, not made: a text of 1m has 28 million.
    """
    if len(record.get("references") or ()) != 2:
        return {}
    first, second = ({*filter(None, text.split(", "))} for text in record["references"])
    both = len(first & second)
    right = len(first) * len(second) - both - comb(both, 2)
    pairs = {tuple(sorted(pair)) for pair in _PAIR.findall(record["prediction"])}
    hits = sum(
        one != other and ((one in first and other in second) or (one in second and other in first))
        for one, other in pairs
    )
    f1 = 2 * hits / (len(pairs) + right) if pairs or right else 1.0
    return {"f1": f1, "exact": float(f1 == 1)}
